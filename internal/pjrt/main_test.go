package pjrt

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// childName is the argv[0] of this test binary as a crashing child; child is its task.
const childName = "pjrt_test: child"

var child func(where, what string)

func TestMain(m *testing.M) {
	if os.Args[0] == childName {
		child(os.Args[1], os.Args[2])
	}
	goleak.VerifyTestMain(m)
}
