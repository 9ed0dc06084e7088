package dist_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/dist/launch"
	"github.com/lazo-ml/lazo/internal/install"
	"github.com/lazo-ml/lazo/internal/ranks"
)

// Ranks of two builds are no job: each process ends at once and says so.
func TestF60_anotherProgram(t *testing.T) {
	t.Parallel()
	if ranks.Inside(t) {
		_, err := dist.Join(t.Context())
		require.ErrorContains(t, err, "rank 1 (host ")
		require.ErrorContains(t, err, "runs another program than rank 0")
		require.ErrorContains(t, err, "start all ranks from one build")
		refused(t, "F60", err)
	}
	said, took := refusedJob(t, joins["control"], func(o *launch.Options) {
		other := filepath.Join(t.TempDir(), "other.test") // of the same source, and not the same file
		// Another process writes it: a parallel test could start one that inherits this process's open file.
		o.Command = append([]string{"sh", "-c", `p=$1; o=$2; shift 2; [ $LAZO_RANK = 0 ] || { cp "$p" "$o" && echo >>"$o" && p=$o; }; exec "$p" "$@"`, "sh", o.Command[0], other}, o.Command[1:]...)
	})
	require.Equal(t, 2*faultTimes, strings.Count(said, "F60: refused: "), said)
	t.Logf("F60: both were gone after %v:\n%s", took, said)
}

// A library that is not there, is none, or is that of another launcher is refused by each rank before it is used.
func TestF63_wrongLibrary(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ path, says string }{
		"no library":              {"/nowhere/libmpi.so.40", "/nowhere/libmpi.so.40"},
		"no MPI":                  {"/lib/x86_64-linux-gnu/libc.so.6", "libc.so.6"},
		"one of another launcher": {"MPICH", "is MPICH 4.0.2: the launcher is of another MPI: this process was started by mpirun of Open MPI"},
	} {
		t.Run(name, func(t *testing.T) {
			if ranks.Inside(t) {
				_, err := dist.Join(t.Context())
				require.ErrorContains(t, err, "dist: Open MPI started this process")
				refused(t, "F63", err)
			}
			path := row.path
			if path == "MPICH" {
				path = stub(t, "libmpi.so.12", "../internal/mpi/testdata/fake.c", `-DTEXT="MPICH Version:      4.0.2\nMPICH ABI: 14"`, "-DTHREADS=3")
			}
			said, took := refusedJob(t, byInstalled, func(o *launch.Options) { o.Command = append([]string{"env", "LAZO_MPI=" + path}, o.Command...) })
			require.Regexp(t, "F63: refused: .*"+regexp.QuoteMeta(row.says), said)
			t.Logf("F63: all were gone after %v:\n%s", took, said)
		})
	}
}

// F64: the installed library is made to provide fewer threads than requested. No rank continues, since programs and the
// host call MPI concurrently.
func TestF64_noThreads(t *testing.T) {
	t.Parallel()
	if ranks.Inside(t) {
		_, err := dist.Join(t.Context())
		require.ErrorContains(t, err, "has no MPI_THREAD_MULTIPLE: programs and the host call it at the same time: use a build of it with threads")
		refused(t, "F64", err)
	}
	installed, err := install.Find(install.MPI, "")
	require.NoError(t, err, "make setup")
	// By another soname: as libmpi.so.40 it would be taken for the library that it needs.
	path := stub(t, "libmpi.so.40", "testdata/serialized.c", "-Wl,-soname,libserialized.so", "-Wl,--no-as-needed", installed.Path, "-Wl,-rpath,"+filepath.Dir(installed.Path))
	said, took := refusedJob(t, byInstalled, func(o *launch.Options) { o.Command = append([]string{"env", "LAZO_MPI=" + path}, o.Command...) })
	require.Contains(t, said, "F64: refused: ")
	t.Logf("F64: all were gone after %v:\n%s", took, said)
}

// refused ends a rank that found the error it was to find: what says that it did not has the same words in it.
func refused(t *testing.T, number string, err error) {
	fmt.Fprintf(os.Stderr, "%s: refused: %v\n", number, err)
	t.FailNow()
}

// byInstalled starts ranks by the MPI that lazo installed, whatever the other tests take.
func byInstalled(o *launch.Options) { o.Mpirun = "" }

// refusedJob runs two ranks that must not come to a job, and end with an error at once; nightly several times. It gives
// what all of them said, and the longest time.
func refusedJob(t *testing.T, options ...func(*launch.Options)) (said string, took time.Duration) {
	t.Helper()
	for range faultTimes {
		begin := time.Now()
		words, err := ranks.Start(t, 2, options...)
		took = max(took, time.Since(begin).Round(time.Millisecond))
		failed := (*launch.ExitError)(nil)
		require.ErrorAs(t, err, &failed, words)
		require.Less(t, took, 6*slack, words) // with what mpirun and two processes need to start
		said += words
	}
	return said, took
}

// stub compiles a shared library of C.
func stub(t *testing.T, name, source string, flags ...string) string {
	t.Helper()
	compiler, err := exec.Command("go", "env", "CC").Output()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), name)
	args := append([]string{"-shared", "-fPIC", "-Wl,-soname," + name, "-o", path, source}, flags...)
	out, err := exec.Command(strings.TrimSpace(string(compiler)), args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}
