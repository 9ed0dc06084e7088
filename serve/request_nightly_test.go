//go:build nightly && unix

package serve_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/serve"
)

// S43, S44: none of 1,000 hostile bodies of up to 1 MiB takes more than 64 MB, or more than a second of all cores.
func TestS43_hostileBodies(t *testing.T) {
	h, b := server(t, serve.Options{})
	require.NoError(t, b.Warm(t.Context()))
	used := func() time.Duration {
		var u syscall.Rusage
		require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	random := rand.New(rand.NewPCG(1, 43))
	most, longest, statuses := uint64(0), time.Duration(0), map[int]int{}
	for n := 0; n < 1000; {
		bodies := hostile(1 + random.IntN(1<<20))
		for _, kind := range slices.Sorted(maps.Keys(bodies)) {
			text := []byte(bodies[kind][:min(len(bodies[kind]), 1<<20)])
			if n >= 10*len(bodies) { // the first of each kind are as they are
				for range random.IntN(4) {
					text[random.IntN(len(text))] = `{}[]",:0 \`[random.IntN(10)]
				}
			}
			begin := used()
			status, size := allocated(h, "/v2/models/sums/infer", string(text))
			took := used() - begin
			require.Contains(t, []int{200, 400, 413}, status, kind)
			require.Less(t, size, uint64(64_000_000), kind)
			require.Less(t, took, time.Second, kind)
			most, longest = max(most, size), max(longest, took)
			statuses[status]++
			n++
		}
	}
	t.Logf("at most %d bytes and %v; statuses %v", most, longest, statuses)
}

// Programs that are installed are clients too: curl with a compressed body, and ab with connections that stay open.
func TestHandler_clients(t *testing.T) {
	h, b := server(t, serve.Options{})
	require.NoError(t, b.Warm(t.Context()))
	s := httptest.NewServer(h)
	defer s.Close()
	path := filepath.Join(t.TempDir(), "request.json")
	require.NoError(t, os.WriteFile(path, []byte(body(`{"name":"x","shape":[1,2,2],"datatype":"FP32","data":[1,2,3,4]}`, flags)), 0o600))
	for name, row := range map[string]struct {
		args []string
		want string
	}{
		"curl": {[]string{"-sS", "--fail-with-body", "-H", "Content-Type: application/json", "-d", "@" + path}, `"data":[10]`},
		"ab":   {[]string{"-q", "-k", "-n", "2000", "-c", "32", "-T", "application/json", "-p", path}, "Complete requests:      2000\nFailed requests:        0\n"},
	} {
		t.Run(name, func(t *testing.T) {
			program, err := exec.LookPath(name)
			if err != nil {
				t.Skip("NOT TESTED with " + name + ", which is not installed")
			}
			out, err := exec.CommandContext(t.Context(), program, append(row.args, s.URL+"/v2/models/sums/infer")...).CombinedOutput()
			require.NoError(t, err, string(out))
			require.Contains(t, strings.ReplaceAll(string(out), "\r", ""), row.want)
			require.NotContains(t, string(out), "Non-2xx", fmt.Sprint(row.args))
		})
	}
}
