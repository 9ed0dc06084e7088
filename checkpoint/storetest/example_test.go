package storetest_test

import (
	"testing"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/storetest"
)

// A test of a store, which must be empty.
func ExampleRun() {
	var store checkpoint.Store // such as gocloud.Store
	_ = func(t *testing.T) { storetest.Run(t, store) }
}
