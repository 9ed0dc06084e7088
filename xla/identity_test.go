package xla_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// A library from elsewhere is probed the first time, and again after a change.
func TestForeignLibraryIsProbedOnce(t *testing.T) {
	path := plugintest.Uncached(t).Plugin().Path
	emptyHome(t)
	open := func() xla.Plugin {
		runtime, err := xla.Open(t.Context(), path)
		require.NoError(t, err)
		require.NoError(t, runtime.Close())
		return runtime.Plugin()
	}
	assert.Equal(t, xla.CPU, open().Kind)
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	records, err := filepath.Glob(filepath.Join(cache, "lazo", "probe", "*"))
	require.NoError(t, err)
	require.Len(t, records, 1)

	// change rewrites a field of the record, and the reports' platforms, which show whether the record is used.
	change := func(part, field string, value any) {
		data, err := os.ReadFile(records[0])
		require.NoError(t, err)
		var record map[string]any
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.UseNumber() // nanoseconds do not fit a float64
		require.NoError(t, decoder.Decode(&record))
		for _, report := range record["Reports"].(map[string]any) {
			report.(map[string]any)["Platform"] = "remembered"
		}
		if of := record; field != "" {
			if part != "" {
				of = record[part].(map[string]any)
			}
			require.Contains(t, of, field)
			of[field] = value
		}
		data, err = json.Marshal(record)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(records[0], data, 0o600))
	}
	change("", "", nil)
	assert.Equal(t, "remembered", open().Kind)
	for _, field := range []string{"Size", "Modified", "Changed", "Inode", "Device", "MinMinor"} {
		change("File", field, 1)
		assert.Equal(t, xla.CPU, open().Kind, "%s changed: probe again", field)
	}
	for _, field := range []string{"Boot", "Installed"} {
		change("", field, "other")
		assert.Equal(t, xla.CPU, open().Kind, "%s changed: probe again", field)
	}
	require.NoError(t, os.WriteFile(records[0], []byte("{damaged"), 0o600))
	assert.Equal(t, xla.CPU, open().Kind)
}
