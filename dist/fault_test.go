package dist_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/dist/launch"
	"github.com/lazo-ml/lazo/internal/ranks"
	"github.com/lazo-ml/lazo/loop"
)

// patience is the deadline of these jobs: so long that ranks which only wait for a busy machine keep it.
const patience = 4 * time.Second

// slack is the time that the end of a job may take after the deadline: a beat, the stack of the stuck rank, and
// mpirun's own time to end. At a load of 30 it took 9 s.
const slack = 30 * time.Second

// fault is an action of one rank at step 3, while the others wait for it.
type fault struct {
	rank int
	do   func(job *dist.Job)
	code int      // of the process that says it
	says []string // parts of the one message
	// at once: the end comes without waiting for the deadline.
	atOnce bool
}

func killSelf(s syscall.Signal) func(*dist.Job) {
	return func(*dist.Job) {
		_ = syscall.Kill(os.Getpid(), s)
		select {} // until it comes
	}
}

// readData simulates a source of data that never answers.
func readData(*dist.Job) { <-make(chan int) }

var faults = map[string]fault{
	"killed":             {1, killSelf(syscall.SIGKILL), dist.ExitLost, []string{"rank 1", "was lost", "Its last heartbeat was at step 3, in data"}, true},
	"exits early":        {1, func(*dist.Job) { os.Exit(0) }, dist.ExitLost, []string{"rank 1", "was lost", "Its last heartbeat was at step 3, in data"}, true},
	"panics":             {2, func(*dist.Job) { go panic("no luck"); select {} }, dist.ExitLost, []string{"rank 2", "was lost", "at step 3"}, true},
	"stopped":            {1, killSelf(syscall.SIGSTOP), dist.ExitLost, []string{"rank 1", "no sign of life for ", "stopped", "Its last heartbeat was at step 3"}, false},
	"hangs":              {1, readData, dist.ExitStuck, []string{"rank 1", "is stuck at step 3, in data for ", "waits for it at step 3, in Agree of 1 words", "deadline of 4s", "dist_test.readData", "fault_test.go:"}, false},
	"hangs, last":        {2, readData, dist.ExitStuck, []string{"rank 2", "is stuck at step 3", "dist_test.readData"}, false},
	"0 hangs":            {0, readData, dist.ExitStuck, []string{"rank 0", "is stuck at step 3, in data for ", "dist_test.readData"}, false},
	"0 is killed":        {0, killSelf(syscall.SIGKILL), dist.ExitLost, []string{"rank 0", "was lost", "rank 1", "was at step 3"}, true},
	"0 is stopped":       {0, killSelf(syscall.SIGSTOP), dist.ExitLost, []string{"rank 0", "no sign of life for ", "was at step 3"}, false},
	"fails":              {1, func(j *dist.Job) { j.Fail(errors.New("the disk is full")) }, dist.ExitFailed, []string{"rank 1", "failed at step 3: the disk is full"}, true},
	"other call":         {1, func(j *dist.Job) { j.Fail(j.Barrier("validation")) }, dist.ExitFailed, []string{"different calls: Agree of 1 words by rank 0, 2, Barrier \"validation\" by rank 1"}, true},
	"ends by an error":   {1, func(*dist.Job) { loop.Exit(errors.New("the disk is full")) }, dist.ExitFailed, []string{"rank 1", "failed at step 3: the disk is full"}, true},
	"0 ends by an error": {0, func(*dist.Job) { loop.Exit(errors.New("the disk is full")) }, dist.ExitFailed, []string{"rank 0", "failed at step 3: the disk is full"}, true},
	"ends first":         {1, func(j *dist.Job) { j.Fail(j.Close()) }, dist.ExitFailed, []string{"different calls: Agree of 1 words by rank 0, 2, Close by rank 1"}, true},
}

// Whatever a rank does, all processes of the job are gone within the deadline and a little more, and one message says
// which rank it was, at which step, and what it was doing.

func TestF54_killed(t *testing.T)    { theFaults(t, "killed", "panics") }
func TestF55_endsEarly(t *testing.T) { theFaults(t, "exits early", "ends first") }
func TestF56_stopped(t *testing.T)   { theFaults(t, "stopped") }
func TestF58_rank0(t *testing.T)     { theFaults(t, "0 is killed", "0 is stopped", "0 hangs") }
func TestNobodyHangs(t *testing.T) {
	theFaults(t, "hangs", "hangs, last", "fails", "ends by an error", "0 ends by an error", "other call")
}

// The code of a job of which a rank ended with 0 is that of a rank that was lost, also where the launcher ends the
// others before they can give it.
func TestF55_exitCode(t *testing.T) {
	t.Parallel()
	if ranks.Inside(t) {
		job, err := dist.Join(t.Context(), dist.OnFailure(func(*dist.Failure) { <-time.After(time.Minute) }))
		require.NoError(t, err)
		if job.Rank() == 1 {
			os.Exit(0)
		}
		select {} // until the end of the job
	}
	for range faultTimes {
		said, err := ranks.Start(t, 2, joins["MPI"])
		failed := (*launch.ExitError)(nil)
		require.ErrorAs(t, err, &failed, said)
		if strings.Contains(said, "BAD TERMINATION") { // MPICH takes the rank that it has killed itself
			require.Equal(t, 128+int(syscall.SIGKILL), failed.Code, said)
			continue
		}
		require.Equal(t, dist.ExitLost, failed.Code, said)
	}
}

// byMPICH: ranks are started by an mpirun of MPICH.
var byMPICH = strings.Contains(os.Getenv("LAZO_TEST_MPIRUN"), "mpich")

// quick are those that make check runs, by how the ranks are joined; nightly runs all of them 20 times.
var quick = map[string][]string{
	"MPI":     {"killed", "exits early", "hangs", "ends by an error"},
	"control": {"killed", "exits early", "stopped", "hangs", "0 is killed", "0 hangs", "fails", "ends by an error", "0 ends by an error", "other call"},
}

func theFaults(t *testing.T, names ...string) {
	t.Parallel() // jobs wait for deadlines more than they work
	for name, by := range joins {
		for _, what := range names {
			f, known := faults[what]
			require.True(t, known, what)
			if !everything && !slices.Contains(quick[name], what) {
				continue
			}
			t.Run(name+", "+what, func(t *testing.T) {
				if !everything {
					t.Parallel()
				}
				for range faultTimes {
					f.run(t, by)
				}
			})
		}
	}
}

// place is the variable with the folder in which ranks note themselves.
const placeVariable = "LAZO_TEST_PLACE"

func (f fault) run(t *testing.T, by func(*launch.Options)) {
	if ranks.Inside(t) {
		f.rankOf(t)
		return
	}
	place := t.TempDir()
	said, err := ranks.Start(t, 3, by, func(o *launch.Options) {
		o.Env = append(o.Env, placeVariable+"="+place, "LAZO_DEADLINE="+patience.String())
	})
	now := time.Now()
	failed := (*launch.ExitError)(nil)
	require.ErrorAs(t, err, &failed, said)
	info, err := os.Stat(filepath.Join(place, "fault"))
	require.NoError(t, err, said)
	took := now.Sub(info.ModTime())
	t.Logf("all processes were gone after %v, exit code %d:\n%s", took.Round(time.Millisecond), failed.Code, said)
	most := patience + slack
	if f.atOnce {
		most = slack
	}
	require.Less(t, took, most)
	for r := range 3 {
		text, err := os.ReadFile(filepath.Join(place, strconv.Itoa(r)))
		require.NoError(t, err)
		pid, err := strconv.Atoi(string(text))
		require.NoError(t, err)
		// mpirun kills those that are left, and does not wait until they are gone.
		require.Eventually(t, func() bool { return !lives(pid) }, slack, time.Millisecond, "rank %d lives", r)
	}
	messages := strings.Count(said, "lazo: the job of 3 ranks has ended: ")
	if messages == 0 && f.atOnce && (byMPICH || strings.Contains(said, "BAD TERMINATION")) {
		// MPICH's mpirun was faster than the others, and ended them: it says that one has died, and not always which, and
		// nothing of one that gave an exit code.
		t.Log("mpirun was faster")
		return
	}
	if messages == 0 && f.rank == 0 && f.atOnce {
		// mpirun was faster than rank 1, and ended it: then it is mpirun that names the rank.
		require.Contains(t, said, "process rank 0 ", said)
		return
	}
	require.Equal(t, 1, messages, said)
	for _, part := range f.says {
		require.Contains(t, said, part)
	}
}

// lives reports whether a process runs. A zombie does not.
func lives(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

func (f fault) rankOf(t *testing.T) {
	job, err := dist.Join(t.Context())
	require.NoError(t, err)
	place := os.Getenv(placeVariable)
	require.NoError(t, os.WriteFile(filepath.Join(place, strconv.Itoa(job.Rank())), fmt.Append(nil, os.Getpid()), 0o600))
	words := []int64{0}
	for step := range int64(3) {
		job.At(step+1, "data")
		require.NoError(t, job.Agree(words))
	}
	waitForBeats(t, job)
	if job.Rank() == f.rank {
		require.NoError(t, os.WriteFile(filepath.Join(place, "fault"), nil, 0o600))
		f.do(job)
		return
	}
	job.Fail(job.Agree(words))
}

// waitForBeats returns when the third step of all ranks is in a beat that rank 0 has read: a rank that is killed is
// known to have come so far.
func waitForBeats(t *testing.T, job *dist.Job) {
	known := filepath.Join(os.Getenv(placeVariable), "known")
	require.Eventually(t, func() bool {
		if job.Rank() == 0 {
			return job.Reached(3) && os.WriteFile(known, nil, 0o600) == nil
		}
		_, err := os.Stat(known)
		return err == nil
	}, time.Minute, time.Millisecond)
}

// A phase that was announced may take longer than the deadline.
func TestBusy_isWaitedFor(t *testing.T) {
	t.Parallel()
	if !ranks.Over(t, 2, joins["control"], func(o *launch.Options) { o.Env = append(o.Env, "LAZO_DEADLINE=1s") }) {
		return
	}
	job, err := dist.Join(t.Context())
	require.NoError(t, err)
	if job.Rank() == 1 {
		done := job.Busy("compile", time.Minute)
		<-time.After(2500 * time.Millisecond)
		done()
	}
	require.NoError(t, job.Barrier("compiled"))
	require.NoError(t, job.Close())
}
