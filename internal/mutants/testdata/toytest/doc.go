// Package toytest has tests of toy.
package toytest
