package checkpoint_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
)

// A manifest whose checksum is right can say anything.
func TestShares_hostileManifests(t *testing.T) {
	m := sharedDisk(t, 1)
	text := string(read(t, m, dir(1)+"/manifest.json"))
	for _, row := range []struct{ name, old, new, want string }{
		{"a part that is missing", `{"rank":1,"start":[2],`, `{"rank":1,"start":[4],`, "appears twice"},
		{"fewer parts", `"dims":[8],"part":[2]`, `"dims":[10],"part":[2]`, "4 parts of dims [2], dims [10] take 5"},
		{"a part off the grid", `"start":[2]`, `"start":[3]`, "on the grid of"},
		{"a negative place", `"start":[2]`, `"start":[-2]`, "on the grid of"},
		{"parts that do not divide", `"dims":[8],"part":[2]`, `"dims":[8],"part":[3]`, "do not divide"},
		{"parts of nothing", `"dims":[8],"part":[2]`, `"dims":[8],"part":[0]`, "do not divide"},
		{"another number of axes", `"dims":[8],"part":[2]`, `"dims":[8],"part":[2,1]`, "parts of dims"},
		{"billions of parts", `"dims":[8],"part":[2]`, `"dims":[4000000000],"part":[1]`, "more than 1000000 parts"},
		{"more bytes than the file", `"dims":[8],"part":[2]`, `"dims":[8000000000],"part":[2000000000]`, "on the grid of"},
		{"a rank without a file", `{"rank":1,"start":[2],`, `{"rank":5,"start":[2],`, "rank-00001.safetensors: its parts take 360 bytes"},
		{"a file that is a path", `"rank-00001.safetensors"`, `"../../rank-00001.safetensors"`, "is not the file name of its rank"},
		{"numbers of half a byte", `"dtype":"F32","dims":[8]`, `"dtype":"F4","dims":[8]`, "cannot be sharded"},
		{"no type", `"dtype":"F32","dims":[8]`, `"dtype":"F33","dims":[8]`, "F33"},
		{"a name twice", `"/whole": `, `"/rows": `, "is listed both as whole and as sharded"},
		{"an unknown field", `"part":[2]`, `"port":[2]`, "port"},
		{"null", `"/rows": {`, `"/nothing": null, "/rows": {`, "null"},
		{"of format 1", `"format": 2`, `"format": 1`, "unknown field"},
	} {
		bad := strings.Replace(text, row.old, row.new, 1)
		require.NotEqual(t, text, bad, row.name)
		write(t, m, dir(1)+"/manifest.json", []byte(bad))
		write(t, m, dir(1)+"/COMMIT", []byte(checkpoint.Commit([]byte(bad))))
		f := openMem(t, m, checkpoint.Options{ReadOnly: true})
		_, err := f.Newest(t.Context())
		require.ErrorAs(t, err, new(*checkpoint.DamagedError), row.name)
		require.ErrorContains(t, err, row.want, row.name)
		require.NoError(t, f.Close())
	}
}
