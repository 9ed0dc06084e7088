package spmd_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/gob"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lazo-ml/lazo/internal/idle"
	"github.com/lazo-ml/lazo/internal/install"
	"github.com/lazo-ml/lazo/internal/mpi"
	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/spmd"
)

// Environment of a rank: the test to run its part of, and a folder with the programs, where it leaves a file when it
// passes.
const (
	rankTest   = "LAZO_TEST_RANK_OF"
	rankFolder = "LAZO_TEST_FOLDER"
)

// onRanks runs part on each rank: this test again, as the processes of a job. All must pass. prepare puts files into
// the job's folder.
func onRanks(t *testing.T, ranks int, prepare func(folder string), part func(t *testing.T, w *mpi.World, folder string)) {
	t.Helper()
	switch os.Getenv(rankTest) {
	case "":
	case t.Name():
		w := join(t)
		require.Equal(t, ranks, w.Size(), "ranks of the job")
		folder := os.Getenv(rankFolder)
		t.Cleanup(func() {
			require.NoError(t, w.Finalize())
			if !t.Failed() {
				require.NoError(t, os.WriteFile(filepath.Join(folder, "passed."+strconv.Itoa(w.Rank())), nil, 0o600))
			}
		})
		part(t, w, folder)
		return
	default:
		t.SkipNow() // the part of another test
	}
	folder := t.TempDir()
	prepare(folder)
	words := strings.Fields(os.Getenv("LAZO_TEST_MPIRUN"))
	if len(words) == 0 {
		words = []string{"mpirun"}
		if library, err := install.Find("mpi", ""); err == nil { // installed by make setup
			words[0] = filepath.Join(filepath.Dir(filepath.Dir(library.Path)), "bin", "mpirun")
		}
		mpirun, err := exec.LookPath(words[0])
		require.NoError(t, err, "these tests need an MPI: make setup installs one, or name an mpirun by LAZO_TEST_MPIRUN")
		words[0] = mpirun
	}
	var names []string
	for part := range strings.SplitSeq(t.Name(), "/") {
		names = append(names, "^"+part+"$")
	}
	words = append(words, "-np", strconv.Itoa(ranks), os.Args[0], "-test.v", "-test.run", strings.Join(names, "/"), "-test.timeout", "5m")
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), rankTest+"="+t.Name(), rankFolder+"="+folder,
		"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", // as in a container
		"OMPI_MCA_rmaps_base_oversubscribe=1", "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe", // more ranks than processors
		"OMPI_MCA_hwloc_base_binding_policy=none", "PRTE_MCA_hwloc_default_binding_policy=none", "OMPI_MCA_mpi_yield_when_idle=1")
	cmd.Env = append(cmd.Env, idle.Environment(t)...)
	if filepath.IsAbs(words[0]) { // its library is next to it
		cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(words[0])+":"+os.Getenv("PATH"))
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	passed, err := filepath.Glob(filepath.Join(folder, "passed.*"))
	require.NoError(t, err)
	require.Len(t, passed, ranks, "ranks that passed:\n%s", out)
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "rank 0:") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

var joined struct {
	sync.Once
	world *mpi.World
	err   error
}

// join makes this process a rank, until its end, and registers the handlers.
func join(t testing.TB) *mpi.World {
	t.Helper()
	joined.Do(func() {
		var l *mpi.Library
		if l, joined.err = mpi.Open(""); joined.err == nil {
			joined.world, joined.err = l.Init()
		}
	})
	require.NoError(t, joined.err)
	plugin, err := loadCPU()
	require.NoError(t, err)
	for name, function := range joined.world.Handlers() {
		require.NoError(t, plugin.RegisterHandler(name, "Host", function))
	}
	return joined.world
}

// parameter is a parameter in a program's text.
type parameter struct {
	dtype string
	dims  []int
	cut   [][]string // mesh axes that shard each axis
}

// program is a StableHLO program with parameters on a mesh.
type program struct {
	text       string
	axes       []string
	sizes      []int
	parameters []parameter
}

var (
	meshText      = regexp.MustCompile(`sdy\.mesh @mesh = <\[(.*?)\]>`)
	axisText      = regexp.MustCompile(`"(\w+)"=(\d+)`)
	parameterText = regexp.MustCompile(`%\w+: tensor<([^>]*)>(?: ?\{[^}]*?sdy\.sharding = #sdy\.sharding<@mesh, \[(.*?)\]>)?`)
	cutText       = regexp.MustCompile(`\{(.*?)\}`)
	nameText      = regexp.MustCompile(`"(\w+)"`)
)

// parse reads a program's text.
func parse(t testing.TB, text string) (p program) {
	p.text = text
	for _, axis := range axisText.FindAllStringSubmatch(meshText.FindStringSubmatch(text)[1], -1) {
		n, err := strconv.Atoi(axis[2])
		require.NoError(t, err)
		p.axes, p.sizes = append(p.axes, axis[1]), append(p.sizes, n)
	}
	_, list, ok := strings.Cut(text, "@main(")
	require.True(t, ok)
	list, _, _ = strings.Cut(list, ") -> ")
	for _, found := range parameterText.FindAllStringSubmatch(list, -1) {
		words := strings.Split(found[1], "x")
		one := parameter{dtype: words[len(words)-1]}
		for _, word := range words[:len(words)-1] {
			n, err := strconv.Atoi(word)
			require.NoError(t, err)
			one.dims = append(one.dims, n)
		}
		for _, axis := range cutText.FindAllStringSubmatch(found[2], -1) {
			var names []string
			for _, name := range nameText.FindAllStringSubmatch(axis[1], -1) {
				names = append(names, name[1])
			}
			one.cut = append(one.cut, names)
		}
		p.parameters = append(p.parameters, one)
	}
	require.Len(t, p.parameters, strings.Count(list, "tensor<"), "parameters of %s", list)
	return p
}

func (p program) devices() int {
	n := 1
	for _, size := range p.sizes {
		n *= size
	}
	return n
}

var elementTypes = map[string]pjrt.DType{
	"i1": pjrt.Bool, "i8": pjrt.Int8, "i16": pjrt.Int16, "i32": pjrt.Int32, "i64": pjrt.Int64,
	"ui8": pjrt.Uint8, "ui16": pjrt.Uint16, "ui32": pjrt.Uint32, "ui64": pjrt.Uint64,
	"f16": pjrt.Float16, "bf16": pjrt.BFloat16, "f32": pjrt.Float32, "f64": pjrt.Float64,
	"complex<f32": pjrt.Complex64, "complex<f64": pjrt.Complex128,
}

// argument returns a device's part of a parameter. All processes draw the same numbers.
func (p program) argument(t testing.TB, number, device int) pjrt.Array {
	one := p.parameters[number]
	dtype, ok := elementTypes[one.dtype]
	require.True(t, ok, one.dtype)
	elements := 1
	for _, d := range one.dims {
		elements *= d
	}
	draw := rand.New(rand.NewPCG(uint64(number), 7))
	var whole []byte
	for range elements {
		switch one.dtype {
		case "f32":
			whole = binary.LittleEndian.AppendUint32(whole, math.Float32bits(float32(draw.Float64()+0.01)))
		case "f64":
			whole = binary.LittleEndian.AppendUint64(whole, math.Float64bits(draw.Float64()+0.01))
		case "i32":
			whole = binary.LittleEndian.AppendUint32(whole, uint32(2+draw.IntN(3)))
		case "i64":
			whole = binary.LittleEndian.AppendUint64(whole, uint64(2+draw.IntN(3)))
		case "ui32":
			whole = binary.LittleEndian.AppendUint32(whole, draw.Uint32())
		case "ui64":
			whole = binary.LittleEndian.AppendUint64(whole, draw.Uint64())
		case "i1", "ui8", "i8":
			whole = append(whole, byte(draw.IntN(2)))
		default:
			t.Fatalf("no numbers of type %s", one.dtype)
		}
	}
	// The index of the device on each axis of the mesh.
	place, left := map[string]int{}, device
	for i, axis := range slices.Backward(p.axes) {
		place[axis], left = left%p.sizes[i], left/p.sizes[i]
	}
	size := len(whole) / max(elements, 1)
	shape, data := slices.Clone(one.dims), whole
	for axis, names := range one.cut {
		parts, at := 1, 0
		for _, name := range names {
			n := p.sizes[slices.Index(p.axes, name)]
			parts, at = parts*n, at*n+place[name]
		}
		if parts == 1 {
			continue
		}
		outer, inner := 1, size
		for _, d := range shape[:axis] {
			outer *= d
		}
		for _, d := range shape[axis+1:] {
			inner *= d
		}
		row, part := shape[axis]*inner, shape[axis]*inner/parts
		var cut []byte
		for o := range outer {
			cut = append(cut, data[o*row+at*part:o*row+(at+1)*part]...)
		}
		data, shape[axis] = cut, shape[axis]/parts
	}
	return pjrt.Array{Shape: pjrt.Shape{DType: dtype, Dims: shape}, Data: data}
}

// run returns the bytes of each output of each device.
func run(t testing.TB, e *pjrt.Executable, arguments [][]pjrt.Array) (outputs [][][]byte) {
	t.Helper()
	var buffers [][]*pjrt.Buffer
	for d, list := range arguments {
		var on []*pjrt.Buffer
		for _, a := range list {
			b, err := e.Devices()[d].Put(a)
			require.NoError(t, err)
			on = append(on, b)
		}
		buffers = append(buffers, on)
	}
	execution, err := e.Execute(buffers, pjrt.ExecuteOptions{})
	require.NoError(t, err)
	require.NoError(t, execution.Await())
	for d := range arguments {
		var of [][]byte
		for i, b := range execution.Outputs[d] {
			elements := 1
			for _, n := range e.Outputs()[i].Dims {
				elements *= n
			}
			data := make([]byte, elements*e.Outputs()[i].DType.Size())
			require.NoError(t, b.ToHost(data))
			of = append(of, data)
		}
		outputs = append(outputs, of)
	}
	require.NoError(t, execution.Close())
	return outputs
}

// expectation is a program for ranks, with the result of as many devices in one process.
type expectation struct {
	Module    []byte         // as XLA partitioned it
	Arguments [][]pjrt.Array // of each device
	Outputs   [][][]byte     // of each device
	Types     []pjrt.DType   // of the outputs
}

// expect runs programs on devices of this process, and writes the expectations of the ranks into a folder.
func expect(t *testing.T, folder string, devices int, texts map[string]string) {
	client := openCPU(t, devices)
	options := pjrt.CompileOptions{Partitions: devices, SPMD: true, Shardy: true}
	for name, text := range texts {
		p := parse(t, text)
		require.Equal(t, devices, p.devices(), name)
		var x expectation
		for d := range devices {
			var list []pjrt.Array
			for i := range p.parameters {
				list = append(list, p.argument(t, i, d))
			}
			x.Arguments = append(x.Arguments, list)
		}
		whole, err := client.Compile([]byte(text), options)
		require.NoError(t, err, name)
		x.Outputs = run(t, whole, x.Arguments)
		for _, shape := range whole.Outputs() {
			x.Types = append(x.Types, shape.DType)
		}
		require.NoError(t, whole.Close())
		x.Module, err = client.Partition([]byte(text), options)
		require.NoError(t, err, name)
		file, err := os.Create(filepath.Join(folder, name+".expected"))
		require.NoError(t, err)
		require.NoError(t, gob.NewEncoder(file).Encode(x))
		require.NoError(t, file.Close())
	}
}

// expected reads what [expect] wrote.
func expected(t *testing.T, path string) (x expectation) {
	file, err := os.Open(path)
	require.NoError(t, err)
	require.NoError(t, gob.NewDecoder(file).Decode(&x))
	require.NoError(t, file.Close())
	return x
}

// compare runs the programs in a folder on the ranks.
func compare(t *testing.T, w *mpi.World, folder string) {
	files, err := filepath.Glob(filepath.Join(folder, "*.expected"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	client := openCPU(t, 1)
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".expected")
		x := expected(t, path)
		rewritten, found, err := spmd.Rewrite(x.Module, w.Size())
		require.NoError(t, err, name)
		compiled, err := client.CompileHLO(rewritten, pjrt.CompileOptions{})
		require.NoError(t, err, name)
		got := run(t, compiled, x.Arguments[w.Rank():w.Rank()+1])[0]
		require.NoError(t, compiled.Close())

		require.Len(t, got, len(x.Types))
		same, largest := 0, 0.0
		for i, want := range x.Outputs[w.Rank()] {
			if bytes.Equal(want, got[i]) {
				same++
			} else {
				largest = max(largest, difference(t, x.Types[i], want, got[i]))
			}
			// Outputs that are equal on all devices are equal on all ranks.
			if alike := !slices.ContainsFunc(x.Outputs, func(of [][]byte) bool { return !bytes.Equal(of[i], want) }); alike {
				all, err := w.AllGather(got[i])
				require.NoError(t, err)
				for rank := range w.Size() {
					require.Equal(t, got[i], all[rank*len(want):(rank+1)*len(want)], "%s: output %d differs between ranks", name, i)
				}
			}
		}
		if w.Size() == 2 {
			require.Len(t, got, same, "%s: outputs that are not those of one process, bit for bit; the largest difference is %g", name, largest)
		}
		require.LessOrEqual(t, largest, 5e-7, name)
		fmt.Printf("rank %d: %s: %d exchanges in %d calls; %d of %d outputs have the bits of one process, the largest difference is %.2g\n",
			w.Rank(), name, found.Exchanges, len(found.Calls), same, len(got), largest)
	}
}

// difference returns the largest difference of two arrays of floats, relative for numbers above 1.
func difference(t testing.TB, dtype pjrt.DType, a, b []byte) (largest float64) {
	size := dtype.Size()
	number := func(data []byte, i int) float64 {
		if size == 8 {
			return math.Float64frombits(binary.LittleEndian.Uint64(data[i*8:]))
		}
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(data[i*4:])))
	}
	require.Contains(t, []pjrt.DType{pjrt.Float32, pjrt.Float64}, dtype, "an array of another type than floats differs")
	for i := range len(a) / size {
		x, y := number(a, i), number(b, i)
		if d := math.Abs(x-y) / max(1, math.Abs(x)); !(d <= largest) && !(math.IsNaN(x) && math.IsNaN(y)) {
			largest = d
		}
	}
	return largest
}

// smallest are samples that compile quickly, and together have each kind of call.
var smallest = []string{"fsdp", "tensor", "batch norm", "metrics", "while"}

// The steps of models on two processes are bit-identical to two devices in one process.
//
//lazo:norace
func TestModels_onTwoRanks(t *testing.T) {
	onRanks(t, 2, func(folder string) { expect(t, folder, 2, programs(t, 2, smallest...)) }, compare)
}

// Large sums overwrite their operands: neither MPI nor XLA copies them, the program has no memory for both, and results
// are bit-identical to two devices.
func TestLargeSums_areInPlace(t *testing.T) {
	onRanks(t, 2, func(folder string) { expect(t, folder, 2, programs(t, 2, "wide")) }, func(t *testing.T, w *mpi.World, folder string) {
		x := expected(t, filepath.Join(folder, "wide.expected"))
		rewritten, found, err := spmd.Rewrite(x.Module, 2)
		require.NoError(t, err)
		compiled, err := openCPU(t, 1).CompileHLO(rewritten, pjrt.CompileOptions{})
		require.NoError(t, err)
		program, format, err := compiled.OptimizedProgram()
		require.NoError(t, err)
		require.Equal(t, "hlo_with_config", format)
		memory, err := compiled.Memory()
		require.NoError(t, err)
		require.Len(t, found.Calls, 1)
		call := found.Calls[0]
		require.Equal(t, 2, call.InPlace, "the weights of two layers, of 7 arrays")
		require.Empty(t, spmd.Copies(t, program, 64<<10), "copies of large arrays")
		require.Less(t, memory.Temporary, call.Bytes*3/2, "beside operands the sums would take as much again")
		fmt.Printf("rank %d: %d bytes are summed, %d arrays in place, with %d bytes of temporary memory\n", w.Rank(), call.Bytes, call.InPlace, memory.Temporary)
		compare(t, w, folder)
	})
}

// Six independent exchanges, too different to be joined, have one order on all ranks: otherwise XLA would run them
// concurrently.
func TestSixSums_haveOneOrder(t *testing.T) {
	onRanks(t, 2, func(folder string) {
		text, err := os.ReadFile("testdata/six_sums.mlir")
		require.NoError(t, err)
		expect(t, folder, 2, map[string]string{"six": string(text)})
	}, func(t *testing.T, w *mpi.World, folder string) {
		x := expected(t, filepath.Join(folder, "six.expected"))
		rewritten, found, err := spmd.Rewrite(x.Module, 2)
		require.NoError(t, err)
		require.Len(t, found.Calls, 6)
		compiled, err := openCPU(t, 1).CompileHLO(rewritten, pjrt.CompileOptions{})
		require.NoError(t, err)
		stuck := time.AfterFunc(time.Minute, func() { panic("the ranks wait for each other") })
		defer stuck.Stop()
		for range 40 {
			require.Equal(t, x.Outputs[w.Rank()], run(t, compiled, x.Arguments[w.Rank():w.Rank()+1])[0])
		}
	})
}

// Each kind of exchange has the same result over MPI as in one process.
func TestEachKind_onTwoRanks(t *testing.T) {
	onRanks(t, 2, func(folder string) {
		texts := map[string]string{}
		for _, name := range []string{"branches", "division", "each_kind", "loop"} {
			text, err := os.ReadFile(filepath.Join("testdata", name+".mlir"))
			require.NoError(t, err)
			texts[name] = string(text)
		}
		expect(t, folder, 2, texts)
	}, compare)
}

// If each rank partitions a program by itself, all get the same bytes.
func TestPartition_onTwoRanks(t *testing.T) {
	onRanks(t, 2, func(string) {}, func(t *testing.T, w *mpi.World, _ string) {
		for _, name := range []string{"division", "each_kind", "loop", "six_sums"} {
			rewritten, _, err := spmd.Rewrite(partition(t, name, 2), 2)
			require.NoError(t, err)
			sum := sha256.Sum256(rewritten)
			all, err := w.AllGather(sum[:])
			require.NoError(t, err)
			require.Equal(t, all[:len(sum)], all[len(sum):], name)
		}
	})
}

// Compiling cheaply does not change the partitioner's result.
func TestPartition_isThatOfAFullCompilation(t *testing.T) {
	client := openCPU(t, 2)
	options := pjrt.CompileOptions{Partitions: 2, SPMD: true, Shardy: true}
	full := options
	full.Debug = map[string]any{"xla_backend_optimization_level": 3, "xla_llvm_disable_expensive_passes": false, "xla_cpu_use_fusion_emitters": true}
	texts := programs(t, 2, "fsdp", "while")
	for _, name := range []string{"each_kind", "loop"} {
		text, err := os.ReadFile(filepath.Join("testdata", name+".mlir"))
		require.NoError(t, err)
		texts[name] = string(text)
	}
	for name, text := range texts {
		var both [2][]byte
		var err error
		both[0], err = client.Partition([]byte(text), options)
		require.NoError(t, err)
		both[1], err = client.Partition([]byte(text), full)
		require.NoError(t, err)
		for i := range both { // without the compilation's ID
			both[i], _, err = spmd.Rewrite(both[i], 2)
			require.NoError(t, err)
		}
		require.Equal(t, both[1], both[0], name)
	}
}

func TestPartition_refuses(t *testing.T) {
	client := openCPU(t, 1)
	t.Setenv("TMPDIR", t.TempDir())
	text, err := os.ReadFile("testdata/division.mlir")
	require.NoError(t, err)
	_, err = client.Partition(text, pjrt.CompileOptions{Partitions: 2})
	require.ErrorIs(t, err, pjrt.ErrInvalidArgument)
	require.EqualError(t, err, "pjrt: partition: invalid argument: 1 replicas of 2 partitions (SPMD: false): expected one of two partitions or more, with SPMD")
	_, err = client.Partition(text, pjrt.CompileOptions{Partitions: 2, SPMD: true, Shardy: true})
	require.ErrorContains(t, err, "pjrt: partition: pjrt: compile: PJRT_Client_Compile: INVALID_ARGUMENT: No matching device found")
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left)
}

// The plugin does not report that it cannot write the module. The limit is of a process of its own, because go test's
// log of files would meet it too.
func TestPartition_fullDisk(t *testing.T) {
	const inside = "LAZO_TEST_FULL_DISK"
	if os.Getenv(inside) == "" {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^TestPartition_fullDisk$")
		child.Env = append(os.Environ(), inside+"=1")
		out, err := child.CombinedOutput()
		require.NoError(t, err, string(out))
		require.Contains(t, string(out), "--- PASS: TestPartition_fullDisk")
		return
	}
	client := openCPU(t, 2)
	text, err := os.ReadFile("testdata/loop.mlir")
	require.NoError(t, err)
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 100, Max: unix.RLIM_INFINITY}))
	_, err = client.Partition(text, pjrt.CompileOptions{Partitions: 2, SPMD: true, Shardy: true})
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}))
	require.ErrorContains(t, err, "pjrt: partition: the module that the plugin wrote below "+os.TempDir()+": unexpected EOF: if that disk is full, ")
}

var loadCPU = sync.OnceValues(func() (*pjrt.Plugin, error) {
	plugin, err := install.Find("cpu", "")
	if err != nil {
		return nil, fmt.Errorf("these tests need the CPU plugin: make setup: %w", err)
	}
	for name, value := range pjrt.Environment(plugin.Path, os.Getenv) {
		if err := os.Setenv(name, value); err != nil {
			return nil, err
		}
	}
	return pjrt.Load(plugin.Path)
})

// openCPU makes a client with this many devices, closed with the test.
func openCPU(t testing.TB, devices int) *pjrt.Client {
	t.Helper()
	p, err := loadCPU()
	require.NoError(t, err)
	c, err := p.NewClient(map[string]any{"cpu_device_count": int64(devices)}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}
