// Package ranks runs tests over several processes: the test binary again, as a job's ranks.
package ranks

import (
	"bytes"
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lazo-ml/lazo/dist/launch"
)

const variable = "LAZO_TEST_RANKS"

// limit ends ranks that hang. The suite of strategies over two ranks took 5 minutes at a load of 60.
const limit = 20 * time.Minute

// Over runs the calling test on n ranks, with the MPI that `make setup` installs or the mpirun in $LAZO_TEST_MPIRUN. It
// returns true in the ranks, where the test continues and joins the job with dist.Join:
//
//	if !ranks.Over(t, 2) {
//		return
//	}
//
// In go test's process, Over waits for the ranks and fails the test if one fails.
func Over(t *testing.T, n int, options ...func(*launch.Options)) bool {
	t.Helper()
	if Inside(t) {
		return true
	}
	said, err := Start(t, n, options...)
	if err != nil {
		t.Fatalf("%d ranks: %v\n%s", n, err, said)
	}
	t.Log(said)
	return false
}

func Inside(t *testing.T) bool { return os.Getenv(variable) == t.Name() }

// Start is [Over] in go test's process, for tests of failing ranks. It returns all output, each line with its rank, and
// [launch.Run]'s error.
func Start(t *testing.T, n int, options ...func(*launch.Options)) (said string, err error) {
	t.Helper()
	if other := os.Getenv(variable); other != "" {
		t.Fatalf("a rank of %s would start ranks", other)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, part := range strings.Split(t.Name(), "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
	}
	out := new(output)
	o := launch.Options{
		N: n, Mpirun: os.Getenv("LAZO_TEST_MPIRUN"), Command: []string{self, "-test.run=" + strings.Join(parts, "/"), "-test.timeout=" + limit.String()},
		Env:    []string{variable + "=" + t.Name(), "OMPI_MCA_mpi_yield_when_idle=1"}, // other tests run too
		Stdout: out, Stderr: out, Verbose: true, Grace: 10 * time.Second,
	}
	for _, option := range options {
		if option != nil {
			option(&o)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	err = launch.Run(ctx, o)
	if ctx.Err() != nil {
		err = errors.Join(err, context.Cause(ctx))
	}
	return out.String(), err
}

type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}
