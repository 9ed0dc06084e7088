package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/internal/mpi"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// bytes
var sumSizes = []int{1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 100e6}

// dense models on 784 inputs
var exchangers = []struct {
	name   string
	layers []int
	batch  int // per rank
	steps  int
}{
	{"mlp 2.0 M", []int{1024, 1152, 10}, 64, 20},
	{"mlp 25 M", []int{4096, 4096, 1218, 10}, 16, 3},
}

type exchanging struct {
	*bench
	job           *dist.Job
	world         *mpi.World
	across, alone *xla.Runtime
}

// exchange measures a sum over a job's ranks: by MPI from the host, within a program, and in training steps, as the
// difference from a single rank's step on its part of the batch.
//
//	lazo run -np 4 go run ./cmd/bench -workload exchange
func exchange(ctx context.Context, b *bench) (err error) {
	job, err := dist.Join(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, job.Close()) }()
	if mpi.Joined() == nil {
		return errors.New("there is only one process, so there is nothing to exchange: start the ranks by lazo run -np N, with its MPI")
	}
	install := xla.InstallIfMissing(func(line string) { fmt.Fprintln(os.Stderr, line) })
	across, err := xla.Open(ctx, b.plugin, install, xla.Across(job))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, across.Close()) }()
	alone, err := xla.Open(ctx, b.plugin, install)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, alone.Close()) }()
	e := exchanging{bench: b, job: job, world: mpi.Joined(), across: across, alone: alone}
	for _, bytes := range sumSizes {
		if !b.wants("sums") {
			break
		}
		if err := e.sums(ctx, bytes); err != nil {
			return fmt.Errorf("%d bytes: %w", bytes, err)
		}
	}
	for i := range exchangers {
		if !b.wants("steps") {
			break
		}
		if err := e.steps(ctx, i); err != nil {
			return fmt.Errorf("%s: %w", exchangers[i].name, err)
		}
	}
	return nil
}

func (e exchanging) emit(l line, values []float64) error {
	if e.job.Rank() > 0 {
		return nil
	}
	l.Workload, l.Ranks, l.CPUs, l.Over, l.Load = "exchange", e.job.Size(), runtime.NumCPU(), cmp.Or(e.over, "shared memory"), e.load
	l.MPI, _, _ = strings.Cut(e.world.Library().Version(), ",")
	return e.bench.emit(l, values)
}

func (e exchanging) timed(f func() error) (seconds float64, err error) {
	if err := e.world.Barrier(); err != nil {
		return 0, err
	}
	begin := time.Now()
	err = f()
	return time.Since(begin).Seconds(), err
}

func (e exchanging) bare(values []float32, calls int) (seconds float64, err error) {
	return e.timed(func() error {
		for range calls {
			if err := e.world.Sum(values); err != nil {
				return err
			}
		}
		return nil
	})
}

func callsOf(bytes int) int { return max(1, min(64, 4<<20/bytes)) }

func (e exchanging) sums(ctx context.Context, bytes int) (err error) {
	calls := callsOf(bytes)
	values := make([]float32, bytes/4)
	if _, err := e.bare(values, calls); err != nil {
		return err
	}
	// without sums: a run's own cost
	var programs [2]*xla.Program
	var inputs [2][]compute.Buffer
	for i, n := range []int{0, calls} {
		programs[i], err = e.across.CompileStableHLO(ctx, "sums", sumsOf(len(values), n, e.job.Size()), xla.Built{InPlace: map[int]int{0: 0}})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, programs[i].Close()) }()
		buffer, err := e.across.BufferFromFlatData(0, values, shapes.Make(dtypes.Float32, len(values)))
		if err != nil {
			return err
		}
		inputs[i] = []compute.Buffer{buffer}
		defer func() { inputs[i][0].Finalize() }()
		for range 2 {
			if _, err := programs[i].Run(inputs[i], nil); err != nil {
				return err
			}
		}
	}
	var bare, inside []float64
	repeats := e.repeats
	if bytes <= 1<<20 {
		repeats *= 5
	}
	for range repeats {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		took, err := e.bare(values, calls)
		if err != nil {
			return err
		}
		bare = append(bare, 1e6*took/float64(calls))
		var run [2]float64
		for i := range programs {
			run[i], err = e.timed(func() error {
				_, err := programs[i].Run(inputs[i], nil)
				return err
			})
			if err != nil {
				return err
			}
		}
		inside = append(inside, 1e6*(run[1]-run[0])/float64(calls))
	}
	floor := medianOf(bare)
	return errors.Join(
		e.emit(line{Variant: "bare", Unit: "us/sum", Bytes: bytes}, bare),
		e.emit(line{Variant: "program", Unit: "us/sum", Bytes: bytes, Floor: floor / 1e6, Ratio: medianOf(inside) / floor}, inside))
}

func sumsOf(elements, times, ranks int) string {
	array := fmt.Sprintf("tensor<%dxf32>", elements)
	groups := make([]string, ranks)
	for i := range groups {
		groups[i] = fmt.Sprint(i)
	}
	var body strings.Builder
	x, token := "%x", "%t"
	for i := range times {
		fmt.Fprintf(&body, "%%r%d:2 = stablehlo.custom_call @lazo.all_reduce(%s, %s) {api_version = 4 : i32, backend_config = {site = %[1]d : i64, op = 0 : i64, "+
			"groups = array<i64: %[4]s>, group_size = %[5]d : i64}, output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], "+
			"operand_index = 0, operand_tuple_indices = []>]} : (%[6]s, !stablehlo.token) -> (%[6]s, !stablehlo.token)\n",
			i, x, token, strings.Join(groups, ", "), ranks, array)
		x, token = fmt.Sprintf("%%r%d#0", i), fmt.Sprintf("%%r%d#1", i)
	}
	return fmt.Sprintf("module @sums {\nfunc.func @main(%%x: %[1]s {tf.aliasing_output = 0 : i32}) -> %[1]s {\n%%t = stablehlo.create_token : !stablehlo.token\n%[2]sreturn %[3]s : %[1]s\n}}",
		array, body.String(), x)
}

func (e exchanging) steps(ctx context.Context, number int) (err error) {
	m, ranks := exchangers[number], e.job.Size()
	if e.bench.steps > 0 {
		m.steps = e.bench.steps
	}
	const batches = 4
	set, err := examples(batches * m.batch * ranks)
	if err != nil {
		return err
	}
	joined, err := strategies.DataParallel(e.across, strategies.Parallel{})
	if err != nil {
		return err
	}
	w := workload{model: dense(m.layers...), optimizer: func() *optim.Optimizer {
		return optim.GoMLX(optimizer.StochasticGradientDescent().WithDecay(false).WithLearningRate(1e-3).Done())
	}}
	var trainings [2]measured
	for i, on := range []strategies.Strategy{strategies.Jit(e.alone), joined} {
		state, err := managed.New(on, managed.WithOptimizer(w.optimizer()), managed.WithSeed(0))
		if err != nil {
			return err
		}
		step := managed.TrainStep(w.report("metric"))
		defer func() { err = errors.Join(err, step.Close(), state.Close()) }()
		t := measured{state: state, step: step, variant: "metric"}
		if on == joined {
			t.data = set.Batches(m.batch*ranks, data.Share(e.job.Rank(), ranks))
		} else {
			t.data = set.Batches(m.batch)
		}
		if err := t.run(ctx, 2, nil); err != nil {
			return err
		}
		trainings[i] = t
	}
	bytes := 4 * parameters(m.layers)
	values, calls := make([]float32, bytes/4), callsOf(bytes)
	if _, err := e.bare(values, calls); err != nil {
		return err
	}
	var bare, alone, across, exchange []float64
	for range e.repeats {
		took, err := e.bare(values, calls)
		if err != nil {
			return err
		}
		bare = append(bare, 1e3*took/float64(calls))
		var each [2]float64
		for i, t := range trainings {
			took, err := e.timed(func() error { return t.run(ctx, m.steps, nil) })
			if err != nil {
				return err
			}
			each[i] = 1e3 * took / float64(m.steps)
		}
		// a joint step's slowest rank
		slowest := []int64{int64(each[0] * 1e6)}
		if err := e.world.Max(slowest); err != nil {
			return err
		}
		each[0] = float64(slowest[0]) / 1e6
		alone, across, exchange = append(alone, each[0]), append(across, each[1]), append(exchange, each[1]-each[0])
	}
	l := line{Unit: "ms/step", Bytes: bytes, Batch: m.batch, Steps: m.steps, RSSMB: rssMB()}
	print := func(variant string, values []float64) error {
		l.Variant = m.name + ", " + variant
		return e.emit(l, values)
	}
	err = errors.Join(print("bare sum", bare), print("without exchange", alone), print("with exchange", across))
	l.Floor = medianOf(bare) / 1e3
	l.Ratio = medianOf(exchange) / medianOf(bare)
	return errors.Join(err, print("exchange", exchange))
}

func parameters(layers []int) (n int) {
	in := 784
	for _, out := range layers {
		n += (in + 1) * out
		in = out
	}
	return n
}

func examples(n int) (*data.Set, error) {
	x, y := make([]float32, n*784), make([]int32, n)
	for i := range x {
		x[i] = float32(i%255) / 255
	}
	for i := range y {
		y[i] = int32(i % 10)
	}
	return data.New(data.X(x, n, 784), data.Y(y, n))
}
