package pjrt

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// childName is the argv[0] under which this test binary is a child that crashes; child is what it does.
const childName = "pjrt_test: child"

var child func(where, what string)

func TestMain(m *testing.M) {
	if os.Args[0] == childName {
		child(os.Args[1], os.Args[2])
	}
	goleak.VerifyTestMain(m)
}
