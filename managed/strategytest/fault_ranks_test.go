package strategytest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/dist/launch"
	"github.com/lazo-ml/lazo/internal/install"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/internal/ranks"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

const (
	faultSteps   = 40 // of the job
	saveEach     = 8
	faultPatient = 10 * time.Second // at a load of 10, a save took more than 4 s
	faultSlack   = 30 * time.Second // as in package dist
	faultFolder  = "LAZO_TEST_FAULT_FOLDER"
	faultSeed    = "LAZO_TEST_FAULT_SEED"
)

// jobFault is an action of one rank in one of the phases of a training.
type jobFault struct {
	phases []string
	do     func(t *testing.T)
	waits  bool // the others wait for the deadline, or it shows later
	// ends matches the report of the end by rank RANK; "": the job continues. MPICH's mpiexec may kill a rank that has
	// failed later, and take its exit code.
	ends string
}

var jobFaults = map[string]jobFault{
	"killed":               {[]string{"start", "joined", "compile", "step", "fetch", "save"}, killRank, false, killed},
	"killed before COMMIT": {[]string{"commit"}, killRank, false, killed},
	"stopped":              {[]string{"compile", "step", "fetch", "save"}, stopRank, true, `(?s)rank RANK [^\n]* gives no sign of life for .* ended with exit code (75|137)`},
	"hangs":                {[]string{"data", "callback"}, func(*testing.T) { select {} }, true, `(?s)rank RANK [^\n]* is stuck at step .*strategytest.* ended with exit code (76|137)`},
	"full disk":            {[]string{"compile", "step", "fetch"}, fullDisk, true, `(?s)\[RANK\] [^\n]*(file too large|disk is full).* ended with exit code (1|78|137)|` + bySignal},
	"rank stalls":          {[]string{"start", "joined", "compile", "step", "fetch", "save"}, stallRank, false, ""},
	"folder stalls":        {[]string{"data", "save", "commit"}, func(*testing.T) { <-time.After(stall) }, false, ""},
}

// killed is said by a rank, or by an mpirun that was faster.
const killed = `(?s)(rank RANK .*(was lost|has ended|signal 9)|BAD TERMINATION|process manager error).* ended with exit code (1|75|137)`

// bySignal is the end of a rank by the signal of fullDisk's limit, which a full disk does not send: XLA has its own
// handlers while it compiles. The launcher sees this end first, or another rank does.
const bySignal = `(?s)File size limit exceeded.* ended with exit code (75|153)`

const stall = 2 * time.Second

func killRank(t *testing.T) {
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
	select {} // until it comes
}

func stopRank(t *testing.T) {
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGSTOP))
	select {}
}

func stallRank(t *testing.T) {
	require.NoError(t, exec.Command("sh", "-c", fmt.Sprintf("kill -STOP $PPID; sleep %v; kill -CONT $PPID", stall.Seconds())).Run())
}

// fullDisk has the system refuse each further byte of this process's files, as a full disk does.
func fullDisk(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 100, Max: unix.RLIM_INFINITY}))
}

// moment is when a fault happens, in a step from 1, or before all steps.
type moment struct {
	phase string
	rank  int
	step  int64
	delay time.Duration
}

func (f jobFault) draw(seed uint64, n int) moment {
	random := rand.New(rand.NewPCG(seed, 0))
	m := moment{f.phases[random.IntN(len(f.phases))], random.IntN(n), 1 + random.Int64N(faultSteps), time.Duration(random.IntN(2_000)) * time.Microsecond}
	switch m.phase {
	case "start", "joined":
		m.step = 0
	case "compile":
		m.step, m.delay = 1, 25*m.delay
	case "fetch", "save", "commit":
		m.step = saveEach * (2 + m.step%(faultSteps/saveEach-2)) // neither the first nor the last
	}
	if m.phase == "commit" {
		m.rank = 0
	}
	return m
}

// A fault befalls one rank of a training at a random moment. Stalls of two seconds change nothing. After each other
// fault all processes end in time, and the job restarts by itself from the newest complete checkpoint. The result is
// bit-identical to that of a job without faults.
func TestF54_F56_F58_F65_F66_training(t *testing.T) {
	kinds := mpis
	if os.Getenv("LAZO_TEST_MPIRUN") != "" {
		kinds = []string{""}
	}
	for _, n := range rankCounts {
		var once sync.Once
		var want string
		for _, kind := range kinds {
			for name, f := range jobFaults {
				t.Run(fmt.Sprintf("%s %d %s", name, n, kind), func(t *testing.T) {
					if ranks.Inside(t) {
						f.rankOf(t, n)
						return
					}
					t.Parallel() // jobs wait more than they work
					once.Do(func() { want, _ = jobOf(t, t.TempDir(), n, kind, 0) })
					longest := time.Duration(0)
					for range faultTimes {
						longest = max(longest, f.run(t, n, kind, want))
					}
					t.Logf("%d times, the next start after at most %v", faultTimes, longest.Round(time.Millisecond))
				})
			}
		}
	}
}

// jobOf runs a job with the fault of a seed, of 0 without one, and returns its result and what it said.
func jobOf(t *testing.T, dir string, n int, kind string, seed uint64) (result, said string) {
	said, err := ranks.Start(t, n, func(o *launch.Options) {
		o.Restarts, o.Env = 1, append(o.Env, faultFolder+"="+dir, faultSeed+"="+fmt.Sprint(seed), "LAZO_DEADLINE="+faultPatient.String())
		if kind != "" {
			found, err := install.Find(kind, "")
			require.NoError(t, err, "make nightly")
			o.Mpirun, o.Env = found.Launcher(), append(o.Env, "LAZO_MPI="+found.Path)
		}
	})
	require.NoError(t, err, said)
	text, err := os.ReadFile(filepath.Join(dir, "result"))
	require.NoError(t, err, said)
	return string(text), said
}

func (f jobFault) run(t *testing.T, n int, kind, want string) (took time.Duration) {
	dir, seed := t.TempDir(), uint64(time.Now().UnixNano())
	m := f.draw(seed, n)
	t.Logf("seed %d: %+v", seed, m)
	got, said := jobOf(t, dir, n, kind, seed)
	require.Equal(t, want, got, said)
	fault, err := os.Stat(filepath.Join(dir, "fault"))
	require.NoError(t, err, said)
	again, err := os.Stat(filepath.Join(dir, "again"))
	if f.ends == "" {
		require.ErrorIs(t, err, fs.ErrNotExist, said)
		require.NotContains(t, said, "ended with exit code ")
		return 0
	}
	require.NoError(t, err, said)
	require.Regexp(t, strings.ReplaceAll(f.ends, "RANK", fmt.Sprint(m.rank)), said)
	require.LessOrEqual(t, strings.Count(said, "lazo: the job of "), 1, said)
	most := faultSlack
	if f.waits {
		most += faultPatient
	}
	took = again.ModTime().Sub(fault.ModTime())
	if strings.Contains(said, "mpirun did not end within 10s of its last rank") { // Open MPI's sometimes deadlocks
		took -= 10 * time.Second
	}
	require.Less(t, took, most, said)
	complete, resumed := note(t, dir, "complete"), note(t, dir, "resumed")
	require.GreaterOrEqual(t, resumed, complete, said)
	if m.phase == "save" || m.phase == "commit" {
		require.EqualValues(t, m.step-saveEach, resumed, said)
	}
	return took
}

// note is a number that a rank wrote down, 0 if it did not come to it.
func note(t *testing.T, dir, name string) int {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 { // it was killed while it wrote
		return 0
	}
	require.NoError(t, err)
	n, err := strconv.Atoi(string(text))
	require.NoError(t, err)
	return n
}

// small is a model without anything that takes long.
func small(b *managed.Builder) {
	h := layers.Dense(b.Scope().In("a"), b.Field("x"), true, 16)
	b.Loss("loss", graph.Square(graph.Sub(layers.Dense(b.Scope().In("b"), h, true, 1), b.Field("y"))))
}

// faultTraining trains small and returns a text with the exact values. each is called with each batch; options are
// applied to the state.
func faultTraining(t *testing.T, s strategies.Strategy, each func(batch int64), options ...loop.Option) (string, error) {
	state, err := managed.New(s, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().LearningRate(0.01).Done())))
	require.NoError(t, err)
	defer func() { require.NoError(t, state.Close()) }()
	step := managed.TrainStep(small)
	defer func() { require.NoError(t, step.Close()) }()
	batches := func(position int64) iter.Seq2[data.Batch, error] {
		return func(yield func(data.Batch, error) bool) {
			for b, err := range wave(t, 128).Batches(32, data.Shuffle(3)).From(position) {
				position++
				if each(position); !yield(b, err) {
					return
				}
			}
		}
	}
	_, err = loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, loop.From(batches), append(options, loop.Until(loop.Steps(faultSteps)))...)
	if err != nil {
		return "", err
	}
	return bitsOf(t, state), nil
}

// rankOf is the program of a rank.
func (f jobFault) rankOf(t *testing.T, n int) {
	dir := os.Getenv(faultFolder)
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string, text ...any) {
		require.NoError(t, os.WriteFile(path(name), fmt.Append(nil, text...), 0o600))
	}
	rank, err := strconv.Atoi(os.Getenv("OMPI_COMM_WORLD_RANK") + os.Getenv("PMI_RANK"))
	require.NoError(t, err)
	seed, err := strconv.ParseUint(os.Getenv(faultSeed), 10, 64)
	require.NoError(t, err)
	first := os.Getenv("LAZO_ATTEMPT") == "0"
	if !first || seed == 0 { // a busy machine ends no job without a fault
		t.Setenv("LAZO_DEADLINE", "1m")
	}
	lock := func(rank, how int) { // until the process ends
		fd, err := syscall.Open(path(fmt.Sprint("rank-", rank)), syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o600)
		require.NoError(t, err)
		require.NoError(t, syscall.Flock(fd, how))
	}
	if first {
		lock(rank, syscall.LOCK_EX)
	} else if rank == 0 {
		for r := range n {
			lock(r, syscall.LOCK_SH)
		}
		write("again")
	}
	m, happened := f.draw(seed, n), make(chan struct{})
	befalls := first && seed > 0 && rank == m.rank
	fault := sync.OnceFunc(func() {
		write("fault")
		f.do(t)
		close(happened)
	})
	at := func(phase string, step int64) {
		if befalls && phase == m.phase && step == m.step {
			fault()
		}
	}
	soon := func(phase string, step int64) { time.AfterFunc(m.delay, func() { at(phase, step) }) }

	at("start", 0)
	job, err := dist.Join(t.Context())
	require.NoError(t, err)
	at("joined", 0)
	strategy, err := strategies.DataParallel(plugintest.CPU(t, xla.Across(job)), strategies.Parallel{Shard: strategies.FullyShard(n, 2)})
	require.NoError(t, err)
	saves := checkpoint.Resume(path("run"), checkpoint.Every(loop.Steps(saveEach)))
	if m.phase == "save" || m.phase == "commit" { // of a store, which has a place for them
		require.NoError(t, os.MkdirAll(path("run"), 0o700))
		folder, err := checkpoint.OpenStore(t.Context(), onDisk{path("run"), at}, path("run"), checkpoint.Options{ReadOnly: rank > 0, LeaveSharded: true})
		require.NoError(t, err)
		defer func() { require.NoError(t, folder.Close()) }()
		require.NoError(t, job.Barrier("the folder is open"))
		saves = folder.Resume(checkpoint.Every(loop.Steps(saveEach)))
	}
	complete := func() (step int64) {
		found, err := filepath.Glob(path("run/step-*/COMMIT"))
		require.NoError(t, err)
		if len(found) > 0 {
			step = stepOf(filepath.Dir(found[len(found)-1]))
		}
		return step
	}
	newest := complete()
	resumed := loop.Prepare("resumed", func(_ context.Context, from loop.Beginning) (loop.Option, error) {
		if rank == 0 {
			require.Equal(t, newest, from.From.Steps)
			write("resumed", newest)
		}
		return nil, nil
	})
	each := loop.Watch(loop.EachStep, func(_ context.Context, r loop.Report) error {
		step := r.Elapsed.Steps
		soon("fetch", step)
		at("callback", step)
		if step == faultSteps && befalls {
			<-happened
		}
		if !first || rank > 0 || step%saveEach > 0 {
			return nil
		}
		// A save in the background may take the place of the one before it: so each waits until that is complete.
		for complete() < step-saveEach {
			if _, err := os.Stat(path("fault")); err == nil {
				return nil
			}
			<-time.After(time.Millisecond)
		}
		write("complete", complete())
		return nil
	})
	result, err := faultTraining(t, strategy, func(batch int64) {
		soon("compile", batch)
		soon("step", batch)
		at("data", batch)
	}, saves, resumed, each)
	if err != nil {
		loop.Exit(err)
	}
	if rank == 0 {
		write("result", result)
	}
	require.NoError(t, job.Close())
}

// stepOf is the number in a folder's name, or 0.
func stepOf(folder string) (step int64) {
	_, _ = fmt.Sscanf(filepath.Base(folder), "step-%d", &step)
	return step
}

// Each rank has the data that a fault gives it. All end with the error that reports it, and none waits for the
// deadline.

// F61: the data of one rank has a column more, which its model refuses while the other rank makes the step. The program
// ends there, and all end with its words.
func TestF61_anotherColumn(t *testing.T) {
	unlikeData(t, `requested to reuse variable "/a/dense/weights", but with different shape`, func(rank int, fault func(), yield func(data.Batch, error) bool) {
		part := data.Share(rank, 2)
		if yield(zeros(t, 16, 8, part), nil) {
			fault()
			_ = yield(zeros(t, 16, 8+rank, part), nil)
		}
	})
}

// F61: a batch of one rank has more examples.
func TestF61_moreExamples(t *testing.T) {
	unlikeData(t, "rank 1 has counted 48 samples and rank 0 32: each batch must count the same number of samples in all of them", func(rank int, fault func(), yield func(data.Batch, error) bool) {
		if yield(zeros(t, 16, 8), nil) {
			fault()
			_ = yield(zeros(t, 16<<rank, 8), nil)
		}
	})
}

// F62: the data of one rank ends earlier.
func TestF62_endsEarlier(t *testing.T) {
	unlikeData(t, "the data of rank 1 ended after 3 batches, rank 0 has had ", func(rank int, fault func(), yield func(data.Batch, error) bool) {
		for i := range 5 - 2*rank {
			if i == 2 {
				fault()
			}
			if !yield(zeros(t, 16, 8), nil) {
				return
			}
		}
	})
}

// F62: one element of one rank's batch is another one. The message names the field.
func TestF62_anotherValue(t *testing.T) {
	unlikeData(t, `rank 1 differs from rank 0 in the values of field "y"`, func(rank int, fault func(), yield func(data.Batch, error) bool) {
		if yield(zeros(t, 16, 8), nil) {
			fault()
			other := zeros(t, 16, 8)
			y, err := other.Field("y")
			require.NoError(t, err)
			y.Flat.([]float32)[7] = float32(rank)
			_ = yield(other, nil)
		}
	})
}

// F62: the set of one rank has more examples, of which each reads its part. The message has both numbers.
func TestF62_anotherLength(t *testing.T) {
	const says = "rank 1 differs from rank 0 in the set and the order of its examples (rank 1 has 96 examples (content "
	unlikeData(t, says, func(rank int, fault func(), yield func(data.Batch, error) bool) {
		n := 64 + 32*rank
		set, err := data.New(data.X(make([]float32, n*8), n, 8), data.Y(make([]float32, n), n, 1))
		require.NoError(t, err)
		fault()
		for b, err := range set.Batches(16, data.Share(rank, 2)).All() {
			if !yield(b, err) {
				return
			}
		}
	})
}

// unlikeData trains on two ranks until the data of one is another one, which it says before by fault.
func unlikeData(t *testing.T, says string, batches func(rank int, fault func(), yield func(data.Batch, error) bool)) {
	if ranks.Inside(t) {
		job, err := dist.Join(t.Context())
		require.NoError(t, err)
		strategy, err := strategies.DataParallel(plugintest.CPU(t, xla.Across(job)), strategies.Parallel{})
		require.NoError(t, err)
		state, err := managed.New(strategy, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
		require.NoError(t, err)
		fault := func() {
			require.NoError(t, os.WriteFile(filepath.Join(os.Getenv(faultFolder), "fault"), nil, 0o600))
		}
		_, err = loop.New(loop.On(loop.EachStep, managed.TrainStep(small))).Run(t.Context(), state, loop.Data[data.Batch](func(yield func(data.Batch, error) bool) {
			batches(job.Rank(), fault, yield)
		}))
		loop.Exit(err)
		return
	}
	for range faultTimes {
		dir := t.TempDir()
		said, err := ranks.Start(t, 2, func(o *launch.Options) { o.Env = append(o.Env, faultFolder+"="+dir, "LAZO_DEADLINE=1m") })
		now := time.Now()
		failed := (*launch.ExitError)(nil)
		require.ErrorAs(t, err, &failed, said)
		fault, err := os.Stat(filepath.Join(dir, "fault"))
		require.NoError(t, err, said)
		took := now.Sub(fault.ModTime())
		require.Less(t, took, faultSlack, "nobody waited for the deadline")
		require.Contains(t, said, "[0] ", said)
		require.Contains(t, said, says, said)
		for line := range strings.Lines(said) {
			if strings.HasPrefix(line, "[0] lazo: ") || strings.Contains(line, " loop: ") {
				require.Contains(t, line, says)
			}
		}
		t.Logf("all were gone after %v, exit code %d:\n%s", took.Round(time.Millisecond), failed.Code, said)
	}
}

// onDisk is a store of files, with phases of a save.
type onDisk struct {
	dir string
	at  func(phase string, step int64)
}

func (s onDisk) path(key string) string { return filepath.Join(s.dir, key) }

func (s onDisk) Put(_ context.Context, key string, write func(io.Writer) error) error {
	step, file := filepath.Split(s.path(key))
	if file == "COMMIT" {
		s.at("commit", stepOf(step))
	}
	if err := os.MkdirAll(step, 0o700); err != nil {
		return err
	}
	f, err := os.Create(s.path(key) + ".part")
	if err != nil {
		return err
	}
	err = write(f)
	s.at("save", stepOf(step))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(s.path(key)+".part", s.path(key))
}

func (s onDisk) ReadAt(_ context.Context, key string, p []byte, offset int64) (int, error) {
	f, err := os.Open(s.path(key))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.ReadAt(p, offset)
}

func (s onDisk) Size(_ context.Context, key string) (int64, error) {
	info, err := os.Stat(s.path(key))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (s onDisk) Keys(context.Context) (keys []string, err error) {
	paths, err := filepath.Glob(filepath.Join(s.dir, "*", "*"))
	for _, path := range paths {
		if key, err := filepath.Rel(s.dir, path); err == nil && !strings.HasSuffix(key, ".part") {
			keys = append(keys, filepath.ToSlash(key))
		}
	}
	return keys, err
}

func (s onDisk) Delete(_ context.Context, key string) error { return os.Remove(s.path(key)) }
