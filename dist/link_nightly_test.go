//go:build nightly && linux

package dist_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/dist/launch"
	"github.com/lazo-ml/lazo/internal/ranks"
)

// F57: two ranks in separate network namespaces, as on two hosts, lose their link. Each side ends by itself with a
// message. The test needs the rights to make namespaces.
func TestF57_linkCut(t *testing.T) {
	if ranks.Inside(t) {
		job, err := dist.Join(t.Context())
		require.NoError(t, err)
		for step := range int64(3) {
			job.At(step+1, "data")
			require.NoError(t, job.Barrier("step"))
		}
		waitForBeats(t, job)
		if job.Rank() == 0 {
			require.NoError(t, os.WriteFile(filepath.Join(os.Getenv(placeVariable), "fault"), nil, 0o600))
			out, err := exec.Command("ip", "link", "set", "lazo0", "down").CombinedOutput()
			require.NoError(t, err, string(out))
		}
		select {} // until the end of the job
	}
	if os.Geteuid() != 0 {
		t.Skip("F57: network namespaces are root's to make")
	}
	space := fmt.Sprintf("lazo-test-%d-", os.Getpid())
	ip := func(args string) {
		out, err := exec.Command("ip", strings.Fields(strings.ReplaceAll(args, "SPACE", space))...).CombinedOutput()
		require.NoError(t, err, "ip %s: %s", args, out)
	}
	for r := range 2 {
		ip(fmt.Sprintf("netns add SPACE%d", r))
		t.Cleanup(func() { ip(fmt.Sprintf("netns delete SPACE%d", r)) })
	}
	ip("-n SPACE0 link add lazo0 type veth peer name lazo1 netns SPACE1")
	for r := range 2 {
		ip(fmt.Sprintf("-n SPACE%d address add 10.77.0.%d/24 dev lazo%d", r, r+1, r))
		ip(fmt.Sprintf("-n SPACE%d link set lazo%d up", r, r))
	}
	for range 20 {
		ip("-n SPACE0 link set lazo0 up")
		place := t.TempDir()
		said, err := ranks.Start(t, 2, joins["control"], func(o *launch.Options) {
			o.Env = append(o.Env, placeVariable+"="+place, "LAZO_DEADLINE="+patience.String())
			o.Command = append([]string{"sh", "-c", "LAZO_COORDINATOR=10.77.0.1:7070 exec ip netns exec " + space + `$LAZO_RANK "$@"`, "sh"}, o.Command...)
		})
		now := time.Now()
		failed := (*launch.ExitError)(nil)
		require.ErrorAs(t, err, &failed, said)
		require.Equal(t, dist.ExitLost, failed.Code, said)
		info, err := os.Stat(filepath.Join(place, "fault"))
		require.NoError(t, err, said)
		took := now.Sub(info.ModTime())
		require.Less(t, took, patience+slack, said)
		require.Contains(t, said, "[0] lazo: the job of 2 ranks has ended: rank 1 ", said)
		require.Contains(t, said, "[1] lazo: the job of 2 ranks has ended: rank 0 ", said)
		require.Equal(t, 2, strings.Count(said, "gives no sign of life for "), said)
		t.Logf("F57: both sides were gone after %v:\n%s", took.Round(time.Millisecond), said)
	}
}
