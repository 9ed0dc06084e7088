// Package storetest tests implementations of [checkpoint.Store] ([Run]), and has a store in memory ([Memory]) and one
// with injected failures ([Faulty]).
package storetest
