package idle

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// A process that yields a hundred times sleeps as often.
func TestEnvironment(t *testing.T) {
	if runtime.GOOS != "linux" {
		require.Empty(t, Environment(t))
		return
	}
	path := filepath.Join(t.TempDir(), "yields")
	compile(t, `#include <sched.h>
#include <sys/resource.h>
int main(void) {
	struct rusage of;
	for (int i = 0; i < 100; i++) sched_yield();
	getrusage(RUSAGE_SELF, &of);
	return of.ru_nvcsw < 100;
}
`, path)
	yields := func(env []string) error {
		cmd := exec.Command(path)
		cmd.Env = append(os.Environ(), env...)
		return cmd.Run()
	}
	require.Error(t, yields(nil))
	require.NoError(t, yields(Environment(t)))
}
