package checkpoint_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// Names of folders are no paths either.
func TestF27_namesOfFolders(t *testing.T) {
	m := saved(t, 1)
	for _, name := range []string{
		"step-2", "step-0000000000002", "step-000000000002.0", "step-000000000002.1", "step-000000000002.02", "step-000000000002.", "step-99999999999999999999",
		"step--00000000002", "step-000000000002 ", "Step-000000000002", "step-00000000000２",
	} {
		require.NoError(t, m.Mkdir(name))
	}
	list, err := openMem(t, m, checkpoint.Options{}).List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
}

//lazo:norace
func TestF27_memoryOfGoMLX(t *testing.T) {
	some := func(n int, element func(i int) string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = element(i)
		}
		return strings.Join(all, ",")
	}
	variable := func(i int) string {
		return fmt.Sprintf(`{"ParameterName":"var://%x","Dimensions":[0],"DType":"Bool","Pos":0,"Length":0}`, i)
	}
	param := func(kind, value string) func(i int) string {
		return func(i int) string {
			return fmt.Sprintf(`{"Scope":"","Key":"%x","Value":%s,"ValueType":"%s"}`, i, value, kind)
		}
	}
	list := func(params, variables string) string {
		return `{"Params":[` + params + `],"Variables":[` + variables + `]}`
	}
	huge := func(n int) string {
		return list("", fmt.Sprintf(`{"ParameterName":"var://w","Dimensions":[%d],"DType":"Bool","Pos":0,"Length":%d}`, n, n))
	}
	bomb := zipped(t, make([]byte, 64<<20))
	worst := 0.0
	for _, c := range []struct {
		name, text string
		bin        []byte
		good       bool
	}{
		{"8 MB of variables", list("", some(90_000, variable)), nil, false},
		{"50,000 variables", list("", some(50_000, variable)), nil, true},
		{"8 MB of parameters", list(some(120_000, param("int", "1")), ""), nil, false},
		{"10,000 parameters", list(some(10_000, param("string", `"`+strings.Repeat("<", 100)+`"`)), ""), nil, true},
		{"10,001 parameters", list(some(10_001, param("int", "1")), ""), nil, false},
		{"a text of 1 MB", list(param("string", `"`+strings.Repeat("x", 1<<20)+`"`)(0), ""), nil, true},
		{"a list of 1 MB", list(param("[]int", "[1"+strings.Repeat(",1", 1<<19)+"]")(0), ""), nil, true},
		{"a text of 8 MB", list(param("string", `"`+strings.Repeat("x", 7<<20)+`"`)(0), ""), nil, false},
		{"one byte too many", strings.Repeat(" ", 8<<20+1), nil, false},
		{"a bomb of a known size", huge(64 << 20), bomb, false},
		{"a bomb of an unknown size", huge(1 << 20), bomb, false},
		{"lengths without bytes", huge(30 << 20), zipped(t, nil), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.bin == nil {
				c.bin = []byte{}
			}
			_, part, err := importOf(t, c.text, c.bin)
			worst = max(worst, part)
			t.Logf("%.0f%% of what may be taken: %.200v", 100*part, err)
			require.Equal(t, c.good, err == nil)
		})
	}
	_, _, err := importOf(t, huge(64<<20), bomb)
	require.ErrorIs(t, err, safetensors.ErrLimit)
	require.ErrorContains(t, err, "give 67108864 bytes for maxBytes")
	c, _, err := importOf(t, huge(64<<20), bomb, 64<<20)
	require.NoError(t, err)
	require.EqualValues(t, 64<<20, c.Bytes)
	c, _, err = importOf(t, strings.Replace(huge(64<<20-1), `}]}`, `},{"ParameterName":"var://x","Dimensions":[],"DType":"Bool","Pos":67108863,"Length":1}]}`, 1), bomb, 64<<20)
	require.NoError(t, err, "what is taken as it comes ends where the next variable begins")
	require.Len(t, c.Tensors, 2)
	t.Logf("F27: GoMLX's checkpoints: all memory ever taken is at most %.0f%% of twice the files and 64 MB", 100*worst)
}

func TestTimeIsTheClocks(t *testing.T) {
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{Keep: []checkpoint.Retention{{EveryTime: time.Hour}}})
	now := time.Date(2026, 5, 1, 12, 30, 0, 123456789, time.FixedZone("", 7200))
	for i := range checkpoint.Step(5) {
		f.SetClock(func() time.Time { return now.Add(time.Duration(i) * 20 * time.Minute) })
		save(t, f, i)
	}
	list, err := f.List(t.Context())
	require.NoError(t, err)
	var times []string
	for _, i := range list {
		times = append(times, fmt.Sprint(i.Step, " ", i.Time))
	}
	require.Equal(t, []string{
		"0 2026-05-01 10:30:00.123456789 +0000 UTC", "2 2026-05-01 11:10:00.123456789 +0000 UTC", "4 2026-05-01 11:50:00.123456789 +0000 UTC",
	}, times, "the first of each hour, and the last in any case")
}

// Saving again and again does not make checkpoints grow.
func TestF21_restarts(t *testing.T) {
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 1}}})
	var sizes []int64
	for i := range 100 {
		resumed(t, f, loop.Steps(7*(i+1)), loop.Thin(20))
		list, err := f.List(t.Context())
		require.NoError(t, err)
		sizes = append(sizes, list[len(list)-1].Bytes)
	}
	require.Less(t, float64(slices.Max(sizes[50:])), 1.5*float64(slices.Max(sizes[:50])), "10 to 20 rows, whose dates and steps have more digits")
	c, err := f.Newest(t.Context())
	require.NoError(t, err)
	require.Len(t, c.Tensors, 2)
	t.Logf("F21: 100 restarts of a run with a history of at most 20 rows: at most %d bytes in the first 50, %d in the others, %d tensors all along", slices.Max(sizes[:50]), slices.Max(sizes[50:]), len(c.Tensors))
}
