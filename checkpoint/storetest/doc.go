// Package storetest tests implementations of [checkpoint.Store] ([Run]). It has a store in memory ([Memory]) and one
// with injected failures ([Faulty]).
package storetest
