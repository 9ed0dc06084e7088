package strategytest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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
	faultAt      = 21 // the batch at which a rank dies in a step
	faultSave    = 24 // the step whose save a rank does not survive
	faultPatient = 4 * time.Second
	faultSlack   = 5 * time.Second // as in package dist
	faultFolder  = "LAZO_TEST_FAULT_FOLDER"
)

// phases are where a rank is killed, and which one. Rank 0 alone writes.
var phases = map[string]int{"start": 1, "joined": 1, "compile": 1, "step": 1, "fetch": 1, "save": 0, "commit": 0}

// A rank is killed in a phase of its training, and the job restarts by itself. All processes of the first start end
// within the deadline and a little more, no complete checkpoint is lost, and the result is bit-identical to that of two
// devices of one process without a kill.
func TestF54_killedIn(t *testing.T) {
	for phase := range phases {
		if phase != "commit" && slices.Contains(killedIn, phase) {
			t.Run(phase, func(t *testing.T) { killed(t, phase) })
		}
	}
}

// F66: the rank that writes is killed when all files of a checkpoint are there, but for the one that makes it complete.
func TestF66_killedBeforeCommit(t *testing.T) { killed(t, "commit") }

func killed(t *testing.T, phase string) {
	if ranks.Inside(t) {
		trainUntilKilled(t, phase)
		return
	}
	devices, err := strategies.DataParallel(plugintest.Devices(t, 2), strategies.Parallel{})
	require.NoError(t, err)
	want := faultTraining(t, devices, nil)
	for range faultTimes {
		dir := t.TempDir()
		said, err := ranks.Start(t, 2, func(o *launch.Options) {
			o.Restarts, o.Env = 1, append(o.Env, faultFolder+"="+dir, "LAZO_DEADLINE="+faultPatient.String())
		})
		require.NoError(t, err, said)
		require.Contains(t, said, "start 1 of 2 ended with exit code ", said)
		fault, err := os.Stat(filepath.Join(dir, "fault"))
		require.NoError(t, err, said)
		again, err := os.Stat(filepath.Join(dir, "again"))
		require.NoError(t, err, said)
		took := again.ModTime().Sub(fault.ModTime())
		require.Less(t, took, faultPatient+faultSlack, said)
		got, err := os.ReadFile(filepath.Join(dir, "result"))
		require.NoError(t, err, said)
		require.Equal(t, want, string(got), said)
		complete, resumed := note(t, dir, "complete"), note(t, dir, "resumed")
		require.GreaterOrEqual(t, resumed, complete, "the one that the job went on from, and the newest checkpoint that was noted as complete")
		if phase == "commit" {
			require.Equal(t, faultSave-saveEach, resumed)
		}
		t.Logf("killed in %s: the job began anew after %v, behind step %d:\n%s", phase, took.Round(time.Millisecond), resumed, said)
	}
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
func faultTraining(t *testing.T, s strategies.Strategy, each func(batch int64), options ...func(*managed.State) loop.Option) string {
	state, err := managed.New(s, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().LearningRate(0.01).Done())))
	require.NoError(t, err)
	defer func() { require.NoError(t, state.Close()) }()
	step := managed.TrainStep(small)
	defer func() { require.NoError(t, step.Close()) }()
	all := []loop.Option{loop.Until(loop.Steps(faultSteps))}
	for _, o := range options {
		all = append(all, o(state))
	}
	batches := func(position int64) iter.Seq2[data.Batch, error] {
		return func(yield func(data.Batch, error) bool) {
			for b, err := range wave(t, 128).Batches(32, data.Shuffle(3)).From(position) {
				if position++; each != nil {
					each(position)
				}
				if !yield(b, err) {
					return
				}
			}
		}
	}
	_, err = loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, loop.From(batches), all...)
	require.NoError(t, err)
	var text strings.Builder
	for _, name := range state.Names() {
		v, err := state.Value(name)
		require.NoError(t, err)
		fmt.Fprintln(&text, name, numbers(t, v))
	}
	return text.String()
}

// trainUntilKilled is the program of a rank.
func trainUntilKilled(t *testing.T, phase string) {
	dir := os.Getenv(faultFolder)
	first := os.Getenv("LAZO_ATTEMPT") == "0"
	rank := 0
	for _, name := range []string{"OMPI_COMM_WORLD_RANK", "PMI_RANK"} {
		if text := os.Getenv(name); text != "" {
			var err error
			rank, err = strconv.Atoi(text)
			require.NoError(t, err)
		}
	}
	kill := func(in string) {
		if first && in == phase && rank == phases[phase] {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "fault"), nil, 0o600))
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until it comes
		}
	}
	if !first && rank == 0 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "again"), nil, 0o600))
	}
	kill("start")
	job, err := dist.Join(t.Context())
	require.NoError(t, err)
	kill("joined")
	strategy, err := strategies.DataParallel(plugintest.CPU(t, xla.Across(job)), strategies.Parallel{Shard: strategies.FullyShard(2, 2)})
	require.NoError(t, err)
	store := &onDisk{dir: filepath.Join(dir, "run"), kill: kill, complete: func(step string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "complete"), []byte(step), 0o600))
	}}
	if rank == 0 && !first {
		store.complete = func(string) {} // of the first start alone
	}
	require.NoError(t, os.MkdirAll(store.dir, 0o700))
	folder, err := checkpoint.OpenStore(t.Context(), store, store.dir, checkpoint.Options{ReadOnly: rank > 0})
	require.NoError(t, err)
	defer func() { require.NoError(t, folder.Close()) }()
	require.NoError(t, job.Barrier("the folder is open"))
	each := func(batch int64) {
		if batch == 1 {
			time.AfterFunc(time.Duration(time.Now().UnixNano()%50)*time.Millisecond, func() { kill("compile") })
		}
		if batch == faultAt {
			kill("step")
		}
	}
	// The newest checkpoint is looked up before, to compare it with the one that the run resumes from.
	newest := int64(0)
	if c, err := folder.Newest(t.Context()); err == nil {
		newest = int64(c.Step)
	} else {
		require.ErrorIs(t, err, checkpoint.ErrNone)
	}
	result := faultTraining(t, strategy, each, func(state *managed.State) loop.Option {
		resumed := loop.Prepare("resumed", func(_ context.Context, from loop.Beginning) (loop.Option, error) {
			require.Equal(t, newest, from.From.Steps)
			if rank == 0 && !first {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "resumed"), fmt.Append(nil, newest), 0o600))
			}
			return nil, nil
		})
		fetch := loop.Watch(loop.At(loop.Steps(faultSave)), func(context.Context, loop.Report) error {
			time.AfterFunc(time.Duration(time.Now().UnixNano()%2_000)*time.Microsecond, func() { kill("fetch") })
			return nil
		})
		// A save in the background may take the place of the one before it: so each waits until that is complete.
		settled := loop.Watch(loop.Every(loop.Steps(saveEach)), func(_ context.Context, r loop.Report) error {
			before := r.Elapsed.Steps - saveEach
			if rank > 0 || before <= newest {
				return nil
			}
			for {
				if _, err := store.Size(t.Context(), fmt.Sprintf("step-%012d/COMMIT", before)); !errors.Is(err, fs.ErrNotExist) {
					return err
				}
				<-time.After(time.Millisecond)
			}
		})
		return loop.Options(folder.Resume(checkpoint.Every(loop.Steps(saveEach))), resumed, fetch, settled)
	})
	if rank == 0 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "result"), []byte(result), 0o600))
	}
	require.NoError(t, job.Close())
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

// onDisk is a store of files, which sees what is put.
type onDisk struct {
	dir      string
	kill     func(phase string)
	complete func(step string)
}

func (s *onDisk) path(key string) string { return filepath.Join(s.dir, key) }

func (s *onDisk) Put(_ context.Context, key string, write func(io.Writer) error) error {
	step, file, _ := strings.Cut(key, "/")
	number := strings.TrimLeft(strings.TrimPrefix(step, "step-"), "0")
	if file == "COMMIT" && number == strconv.Itoa(faultSave) {
		s.kill("commit")
	}
	if err := os.MkdirAll(filepath.Dir(s.path(key)), 0o700); err != nil {
		return err
	}
	f, err := os.Create(s.path(key) + ".part")
	if err != nil {
		return err
	}
	err = write(f)
	if number == strconv.Itoa(faultSave) {
		s.kill("save")
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(s.path(key)+".part", s.path(key)); err != nil {
		return err
	}
	if file == "COMMIT" {
		s.complete(number)
	}
	return nil
}

func (s *onDisk) ReadAt(_ context.Context, key string, p []byte, offset int64) (int, error) {
	f, err := os.Open(s.path(key))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.ReadAt(p, offset)
}

func (s *onDisk) Size(_ context.Context, key string) (int64, error) {
	info, err := os.Stat(s.path(key))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (s *onDisk) Keys(context.Context) (keys []string, err error) {
	paths, err := filepath.Glob(filepath.Join(s.dir, "*", "*"))
	for _, path := range paths {
		if key, err := filepath.Rel(s.dir, path); err == nil && !strings.HasSuffix(key, ".part") {
			keys = append(keys, filepath.ToSlash(key))
		}
	}
	return keys, err
}

func (s *onDisk) Delete(_ context.Context, key string) error { return os.Remove(s.path(key)) }

// F65: the disk of the rank that writes takes no more. The run ends on all ranks with that error, and what was complete
// before is there.
func TestF65_fullDisk(t *testing.T) {
	if !ranks.Inside(t) {
		for range faultTimes {
			fullDiskOfOne(t)
		}
		return
	}
	job, err := dist.Join(t.Context())
	require.NoError(t, err)
	strategy, err := strategies.DataParallel(plugintest.CPU(t, xla.Across(job)), strategies.Parallel{})
	require.NoError(t, err)
	state, err := managed.New(strategy, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
	require.NoError(t, err)
	step := managed.TrainStep(small)
	full := loop.Watch(loop.At(loop.Steps(saveEach+1)), func(context.Context, loop.Report) error {
		if job.Rank() > 0 {
			return nil
		}
		entries, err := filepath.Glob(filepath.Join(os.Getenv(faultFolder), "run", "step-*", "COMMIT"))
		for len(entries) == 0 && err == nil { // step 8's save runs in the background
			<-time.After(time.Millisecond)
			entries, err = filepath.Glob(filepath.Join(os.Getenv(faultFolder), "run", "step-*", "COMMIT"))
		}
		fullDisk(t)
		return err
	})
	_, err = loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, wave(t, 128).Batches(32),
		loop.Until(loop.Steps(faultSteps)), checkpoint.Resume(filepath.Join(os.Getenv(faultFolder), "run"), checkpoint.Every(loop.Steps(saveEach))), full)
	if job.Rank() == 0 {
		require.ErrorIs(t, err, syscall.EFBIG)
	} else {
		require.ErrorContains(t, err, "loop: rank 0: ")
		require.ErrorContains(t, err, "file too large")
	}
	fmt.Fprintf(os.Stderr, "F65: %v\n", err)
	require.NoError(t, errors.Join(step.Close(), state.Close()))
	require.NoError(t, job.Close())
}

// fullDiskOfOne is TestF65_fullDisk once, in the process that go test started.
func fullDiskOfOne(t *testing.T) {
	dir := t.TempDir()
	said, err := ranks.Start(t, 2, func(o *launch.Options) { o.Env = append(o.Env, faultFolder+"="+dir) })
	require.NoError(t, err, said)
	require.Equal(t, 2, strings.Count(said, "F65: "), said)
	folder, err := checkpoint.Open(filepath.Join(dir, "run"), checkpoint.Options{ReadOnly: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, folder.Close()) }()
	newest, err := folder.Newest(t.Context())
	require.NoError(t, err)
	require.Equal(t, checkpoint.Step(saveEach), newest.Step)
	t.Log(said)
}

// fullDisk has the system refuse each further byte of this process's files, as a full disk does.
func fullDisk(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 100, Max: unix.RLIM_INFINITY}))
}
