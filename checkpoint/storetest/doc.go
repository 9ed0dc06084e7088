// Package storetest tests implementations of [checkpoint.Store].
package storetest
