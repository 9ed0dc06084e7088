package xla_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/ranks"
	"github.com/lazo-ml/lazo/xla"
)

func TestAcross_refusals(t *testing.T) {
	t.Parallel()
	if !ranks.Over(t, 2, overFake(t)) {
		return
	}
	job := joined(t)
	library := os.Getenv(fakeVariable)
	for _, row := range []struct {
		plugin, says string
		options      []xla.Option
	}{
		{library, "WithStore is for the processes of a job", []xla.Option{xla.WithStore(job)}},
		{library, "WithStore is given no store", []xla.Option{xla.Across(job), xla.WithStore(nil)}},
		{library, "Across is given no job", []xla.Option{xla.Across(nil)}},
		{library, `client option "node_id": Across sets it`, []xla.Option{xla.Across(job), xla.ClientOption("node_id", 0)}},
		{library, `client option "num_nodes": Across sets it`, []xla.Option{xla.Across(job), xla.ClientOption("num_nodes", 2)}},
		{xla.CPU, "leave WithStore out", []xla.Option{xla.Across(job), xla.WithStore(job)}},
		{xla.CPU, "no MPI to exchange by", []xla.Option{xla.Across(job)}},
		{xla.Go, "expected \"cpu\", \"cuda\" or \"tpu\"", []xla.Option{xla.Across(job)}},
	} {
		_, err := xla.Open(t.Context(), row.plugin, row.options...)
		require.ErrorContains(t, err, row.says)
	}
}

// Open installs only if asked to, and reports it.
func TestInstallIfMissing(t *testing.T) {
	calls := offline(t)
	home := emptyHome(t)
	var lines []string
	_, err := xla.Open(t.Context(), xla.CPU, xla.InstallIfMissing(func(line string) { lines = append(lines, line) }))
	require.Error(t, err)
	assert.NotErrorIs(t, err, xla.ErrPluginNotFound)
	assert.Positive(t, calls.Load(), "network calls")
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], home)
	_, err = xla.Open(t.Context(), "rocm", xla.InstallIfMissing(nil))
	require.ErrorIs(t, err, xla.ErrPluginNotFound, "lazo has none to install")
}
