package planned

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlanned(t *testing.T) {
	order := Order{Plugin: "tpu", Topology: "v5e:2x2", File: filepath.Join(t.TempDir(), "step")}
	text, err := order.Environment()
	require.NoError(t, err)
	read, err := ParseOrder(strings.TrimPrefix(text, Variable+"="))
	require.NoError(t, err)
	require.Equal(t, order, read)
	for _, wrong := range []string{"", "1", "{}", `{"plugin":"tpu","topology":"v5e:2x2"}`} {
		_, err := ParseOrder(wrong)
		require.ErrorContains(t, err, "expected what lazo plan sets", wrong)
	}
	_, err = Read(order.File)
	require.Error(t, err)
	s := Step{Name: "train step", Text: "module {}\n", Batch: []int{0}, Inputs: []string{"x"}, Where: map[int]string{3: "main.go:12"}}
	require.NoError(t, s.Write(order.File))
	got, err := Read(order.File)
	require.NoError(t, err)
	require.Equal(t, s, got)
}
