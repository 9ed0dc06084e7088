package storetest_test

import (
	"testing"

	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/dist/storetest"
)

// A test of a store, here of the job's own.
func ExampleRun() {
	_ = func(t *testing.T) {
		job, err := dist.Join(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		storetest.Run(t, job, job)
	}
}
