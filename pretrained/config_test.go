package pretrained_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file of many faults has a message of the first ten, and their number.
func TestFaults(t *testing.T) {
	fields := func(n int) string {
		var all strings.Builder
		for i := range n {
			fmt.Fprintf(&all, `"a%04d": 1, `, i)
		}
		return all.String()
	}
	dir := withTokenizer(t, "qwen3")
	for n, want := range map[int]string{1: "", 10: "", 11: "\nand 1 more", 3000: "\nand 2990 more"} {
		write(t, dir, "generation_config.json", "{"+fields(n)+`"do_sample": false}`)
		_, err := opened(t, dir).Generation()
		require.Error(t, err)
		require.Equal(t, min(n, 10), strings.Count(err.Error(), "expected a field that lazo knows"))
		require.True(t, strings.HasSuffix(err.Error(), want))
		require.Equal(t, want != "", strings.Contains(err.Error(), " more"))
	}
	write(t, dir, "adapter_config.json", "{"+fields(3000)+`"peft_type": "LORA"}`)
	whole, _ := readFile(t, "testdata/adapter-llama/adapter_model.safetensors")
	writeFile(t, filepath.Join(dir, "adapter_model.safetensors"), whole)
	err := loading(t, opened(t, "testdata/llama").Classifier(3).LoadAdapter(dir))
	require.ErrorContains(t, err, "and 2990 more")
	require.Less(t, len(err.Error()), 2000)
}
