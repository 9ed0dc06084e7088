package graphs

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// broken panics in nested calls.
func broken(depth int) {
	if depth > 0 {
		broken(depth - 1)
		return
	}
	panic(errors.New("broken"))
}

func TestCatch_names(t *testing.T) {
	line := regexp.MustCompile(`^graphs/place_test\.go:\d+$`)
	for _, row := range []struct {
		name string
		f    func()
		want string // of the whole text, with LINE for the place
	}{
		{"a line", func() { broken(0) }, "LINE: broken"},
		{"a line under two hundred frames", func() { broken(200) }, "LINE: broken"},
		{"a function given to the standard library", func() {
			slices.SortFunc([]int{1, 2}, func(int, int) int { broken(0); return 0 })
		}, "LINE: broken"},
		{"once, when caught twice", func() { panic(Catch(func() { broken(0) })) }, "LINE: broken"},
		{"once, when wrapped between", func() { panic(fmt.Errorf("outer: %w", Catch(func() { broken(0) }))) }, "outer: LINE: broken"},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := Catch(row.f)
			where := Where(err)
			require.Regexp(t, line, where)
			require.Equal(t, row.want, regexp.MustCompile(regexp.QuoteMeta(where)).ReplaceAllString(err.Error(), "LINE"))
		})
	}
	require.Empty(t, Where(errors.New("other")))
	require.Empty(t, Where(nil))
}

// nobodys panics without a line of user code.
var nobodys = (*strings.Builder)(nil).Reset

// Code beyond the nearest Catch did not build anything and is not named.
func TestCatch_isABorder(t *testing.T) {
	err := Catch(nobodys)
	require.Error(t, err)
	require.Empty(t, Where(err))
	require.Regexp(t, `^graphs/place_test\.go:\d+$`, Where(Catch(func() { panic(fmt.Errorf("%w", Catch(nobodys))) })), "it was this line that panicked")
}

func TestPlaces(t *testing.T) {
	var p Places
	first := p.Here()
	require.Regexp(t, `^graphs/place_test\.go:\d+$`, first)
	seen := len(p.known)
	for range 10 {
		require.NotEqual(t, first, p.Here())
	}
	require.LessOrEqual(t, len(p.known), seen+1, "frames are looked at once")
}

func TestAt(t *testing.T) {
	build := func() {} // the line that is named
	for _, row := range []struct {
		name, want string
		build      any
		f          func()
	}{
		{"a line of its own", `^graphs/place_test\.go:\d+: broken$`, build, func() { broken(0) }},
		{"the function's", `^graphs/place_test\.go:\d+: runtime error`, build, nobodys},
		{"no function", `^graphs/place_test\.go:\d+: broken$`, nil, func() { broken(0) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Regexp(t, row.want, Catch(func() { At(row.build, row.f) }).Error())
		})
	}
	require.Regexp(t, `^graphs/place_test\.go:\d+$`, lineOf(build))
	require.Empty(t, lineOf(nil))
	require.Empty(t, lineOf(7))
	require.NoError(t, Catch(func() { At(build, func() {}) }))
}

func TestInLibrary(t *testing.T) {
	require.True(t, inLibrary(root+"flaxlike/layers.go"))
	require.True(t, inLibrary("/x/pkg/mod/github.com/gomlx/gomlx@v0.28.8/core/graph/ops.go"))
	require.False(t, inLibrary(root+"examples/fit/main.go"))
	require.False(t, inLibrary("/home/somebody/main.go"))
}

// The compiler writes a method value, so it has no line in the source.
func TestLineOf_ofWhatTheCompilerWrote(t *testing.T) {
	require.Regexp(t, `^graphs/place_test\.go:\d+$`, lineOf(func() {}))
	require.Empty(t, lineOf(fmt.Stringer.String))
	require.Empty(t, lineOf((&wrapped{&strings.Builder{}}).String))
}

type wrapped struct{ *strings.Builder }
