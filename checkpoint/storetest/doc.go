// Package storetest has the tests that every [checkpoint.Store] must pass ([Run]), a store in memory ([Memory]), and
// one in which chosen calls fail, or are the last ones of a process ([Faulty]).
package storetest
