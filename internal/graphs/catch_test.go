//lazo:norace
package graphs

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCatch(t *testing.T) {
	boom := errors.New("boom")
	for _, row := range []struct {
		name string
		f    func()
		want string
	}{
		{"nothing", func() {}, ""},
		{"an error", func() { panic(boom) }, "boom"},
		{"a string", func() { panic("text") }, "text"},
		{"a number", func() { panic(3) }, "3"},
		{"the runtime's", func() { var s []int; _ = s[len(s)] }, "index out of range"},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := Catch(row.f)
			if row.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, row.want)
			var caught *Error
			require.ErrorAs(t, err, &caught)
			require.Contains(t, caught.Where, "catch_test.go:")
			require.Equal(t, row.name == "an error", errors.Is(err, boom))
		})
	}
}

func TestIsLibrary(t *testing.T) {
	for function, want := range map[string]bool{
		"runtime.gopanic":                             true,
		"github.com/gomlx/gomlx/core/graph.Add":       true,
		"github.com/gomlx/compute/gobackend.New":      true,
		"github.com/lazo-ml/lazo/managed.(*State).x":  true,
		"github.com/lazo-ml/lazo/examples/mnist.main": false,
		"github.com/lazo-ml/lazo/cmd/bench.main":      false,
		"example.com/me.model":                        false,
		"main.step":                                   false,
	} {
		require.Equal(t, want, isLibrary(function), function)
	}
}
