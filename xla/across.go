package xla

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomlx/compute"

	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/internal/joined"
	"github.com/lazo-ml/lazo/xla/pjrt"
)

// Across opens the runtime for all processes of a job: a program over a mesh of [Runtime.NumDevices] devices runs in
// each process on that one's own, and exchanges with the others. A job of one process changes nothing; a nil one is an
// error.
//
// On the CPU each process is one device, XLA's partitioner divides the program as it does for several devices of one
// process, and the exchange goes by MPI. On accelerators each process has the devices that its plugin lets it use, all
// processes as many, and XLA's own collectives exchange (NCCL, the links of TPUs): the processes of a GPU's plugin find
// each other by the job's store, or by that of [WithStore]. Open then waits for all processes, and its error is that of
// all. The devices of rank 0 are the first of the mesh, then come those of rank 1.
//
// All processes make the same programs and run them in the same order: what differs is [ErrDisagree].
func Across(job *dist.Job) Option {
	return func(o *options) {
		if job == nil {
			o.err = errors.New("xla: Across is given no job: see dist.Join")
		}
		o.job = job
	}
}

// WithStore has the processes of a job ([Across]) find each other by this store in place of [dist.Job.Store]. It is for
// plugins of GPUs: CPUs exchange by MPI, and TPUs know their neighbours. It must work until the runtime is closed.
func WithStore(store dist.Store) Option {
	return func(o *options) {
		if store == nil {
			o.err = errors.New("xla: WithStore is given no store")
		}
		o.store = store
	}
}

// ErrDisagree: the processes of a job compile or run different programs.
var ErrDisagree = dist.ErrDisagree

// Job is the job whose processes the runtime was opened across; nil for a process alone.
func (r *Runtime) Job() *dist.Job {
	if a := r.across(); a != nil {
		return a.job
	}
	return nil
}

// across is nil for a process alone.
func (r *Runtime) across() *across {
	if r == nil {
		return nil
	}
	if c, ok := r.Backend.(*client); ok {
		return c.across
	}
	return nil
}

// Local are the devices of a mesh that this process has: n from the first on. Without [Across] it has them all.
// Programs take and give the values of these alone.
func (r *Runtime) Local(m Mesh) (first, n int) {
	n = m.Devices()
	if a := r.across(); a != nil && n > 1 {
		return a.job.Rank() * a.own(), a.own()
	}
	return 0, n
}

// apart are the runtimes of this process without [Across] beside its job, or those with it.
var apart struct{ across, told atomic.Bool }

// tellApart says once, at rank 0, that each rank of a job is about to train for itself: a program that forgot [Across]
// would go on to the end, and show nothing but one of its models. Once a runtime was opened across the job, another one
// is the rank's own. Where one rank alone forgets it the others wait for it: the message of that has it as the cause.
func tellApart(o *options) {
	job := joined.Now()
	if o.job != nil {
		apart.across.Store(true)
		if job != nil {
			job.Note("")
		}
		return
	}
	if job == nil || apart.across.Load() {
		return
	}
	job.Note("it has opened a runtime without xla.Across, and computes for itself: give xla.Open the option xla.Across(job)")
	if job.Rank() > 0 || apart.told.Swap(true) {
		return
	}
	const text = "xla: Open without Across in a job of several processes: each of them computes for itself, and trains a model of its own. " +
		"Give xla.Across(job) with the job of dist.Join"
	if o.log.Enabled(context.Background(), slog.LevelWarn) {
		o.log.Warn(text, "processes", job.Size())
		return
	}
	fmt.Fprintf(os.Stderr, "lazo: %s (%d processes)\n", text, job.Size())
}

// across is what a client has for a job of several processes.
type across struct {
	job *dist.Job
	by  exchange
	// ids are those of the devices of each rank: one rank's behind another's, they are the mesh.
	ids      [][]int
	compiles sync.Mutex
	// A program at a time: two that exchange at once would meet each other's messages.
	runs   sync.Mutex
	number atomic.Int64 // of programs that were begun
}

// exchange is how the programs of several processes exchange values: by calls of MPI that lazo puts into them
// ([byMPI]), or by the plugin's own collectives ([byPlugin]).
type exchange interface {
	// open makes the client of this process, and gives the IDs of the devices of each rank, as programs name them.
	open(library *pjrt.Plugin, plugin Plugin, options map[string]any) (made *pjrt.Client, ids [][]int, err error)
	// compile compiles a program of all processes for the devices of this one.
	compile(c *client, text string, options pjrt.CompileOptions) (*pjrt.Executable, fromCache, error)
	close() error
}

var _, _ exchange = (*byMPI)(nil), (*byPlugin)(nil)

// newAcross is nil for one process.
func newAcross(library *pjrt.Plugin, plugin Plugin, o *options) (*across, error) {
	if o.job == nil || o.job.Size() == 1 {
		return nil, nil
	}
	var by exchange
	var err error
	if plugin.Kind == CPU {
		by, err = newByMPI(library, plugin, o)
	} else {
		by, err = newByPlugin(plugin, o)
	}
	if err != nil {
		return nil, during(err, "open %q across %d processes", plugin.Kind, o.job.Size())
	}
	return &across{job: o.job, by: by}, nil
}

// open makes the client.
func (a *across) open(library *pjrt.Plugin, plugin Plugin, options map[string]any) (made *pjrt.Client, err error) {
	if a == nil {
		return newClient(library, plugin, options, nil)
	}
	made, a.ids, err = a.by.open(library, plugin, options)
	if err != nil {
		return nil, during(err, "open %q across %d processes", plugin.Kind, a.job.Size())
	}
	return made, nil
}

// own is how many devices each process has.
func (a *across) own() int { return len(a.ids[0]) }

// devices are how many all processes have.
func (a *across) devices() int { return len(a.ids) * a.own() }

// id is that of a device of the mesh, in this process or another.
func (a *across) id(n compute.DeviceNum) (int, error) {
	if n < 0 || int(n) >= a.devices() {
		return 0, fmt.Errorf("xla: device %d: all processes have %d", n, a.devices())
	}
	return a.ids[int(n)/a.own()][int(n)%a.own()], nil
}

// compile compiles a program that is divided over all processes, for the devices of this one.
func (a *across) compile(c *client, name, text string, options pjrt.CompileOptions) (*pjrt.Executable, fromCache, error) {
	a.compiles.Lock()
	defer a.compiles.Unlock()
	defer a.job.Busy("compiling "+name, compileLimit)()
	if err := same(a.job, "compile "+name, text, keyOf(text, options)); err != nil {
		return nil, cacheOff, err
	}
	return a.by.compile(c, text, options)
}

// compileLimit is how long the processes wait for one that compiles.
const compileLimit = 30 * time.Minute

// same tells whether all processes are about to do the same thing; text is that of a program, and is compared where it
// is not.
func same(job *dist.Job, what, text string, key programKey) error {
	equal, err := job.Same(what, int64(binary.LittleEndian.Uint64(key[:])))
	if equal || err != nil {
		return err
	}
	return disagree(job, what, text)
}

// disagree is the error of processes that are about to do different things.
func disagree(job *dist.Job, what, text string) error {
	zero, err := job.Broadcast([]byte(text))
	if err != nil {
		return err
	}
	if text != string(zero) {
		what += ", " + firstDifference(string(zero), text)
	}
	all, err := job.AllGather([]byte(what))
	if err != nil {
		return err
	}
	var list bytes.Buffer
	for rank, other := range all {
		if slices.ContainsFunc(all[:rank], func(said []byte) bool { return bytes.Equal(said, other) }) {
			continue // it stands behind the first that says so
		}
		ranks := fmt.Sprint("rank ", rank)
		for also := rank + 1; also < len(all); also++ {
			if bytes.Equal(all[also], other) {
				ranks = strings.Replace(ranks, "rank ", "ranks ", 1) + fmt.Sprint(", ", also)
			}
		}
		fmt.Fprintf(&list, "\n\t%s: %s", ranks, other)
	}
	return fmt.Errorf("%w: they differ in what they are about to do:%s", ErrDisagree, list.String())
}

// firstDifference is the first line of a program that is another one than at rank 0, from a little before where they
// part.
func firstDifference(zero, own string) string {
	a, b := strings.Split(zero, "\n"), strings.Split(own, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			ours, theirs := partings(strings.TrimSpace(b[i]), strings.TrimSpace(a[i]))
			return fmt.Sprintf("line %d of the program is %s, that of rank 0 %s", i+1, ours, theirs)
		}
	}
	return fmt.Sprintf("the program has %d lines, that of rank 0 %d", len(b), len(a))
}

// The signature of a program is one line, which may have thousands of characters before the first that differs.
const (
	beforeParting = 60  // characters of a line that are shown before the first that differs
	atParting     = 200 // and all in all
)

// partings are two texts, quoted, around the first character in which they differ; … stands for what is left out.
func partings(a, b string) (string, string) {
	x, y := []rune(a), []rune(b)
	same := 0
	for same < min(len(x), len(y)) && x[same] == y[same] {
		same++
	}
	from := max(0, same-beforeParting)
	quoted := func(r []rune) string {
		to := min(len(r), from+atParting)
		text := strconv.Quote(string(r[from:to]))
		if from > 0 {
			text = "…" + text
		}
		if to < len(r) {
			text += "…"
		}
		return text
	}
	return quoted(x), quoted(y)
}

// Alike is what all processes of a job must have alike for a run, beside the program ([Program.Start]).
type Alike struct {
	What string // in messages: "the next batches"
	// Sums are checksums of its parts, the same where these are alike; all processes have equally many.
	Sums []int64
	// Parts says what each of the Sums is of. It is called where they are not the same.
	Parts func() []Part
	// Err is the error of a run where they are not; it comes with the ranks and the parts that differ.
	Err error
}

// Part is a part of what all processes must have alike, in messages.
type Part struct {
	Name string // "field \"x\"", behind "differs in"
	Is   string // what this process has, "" where that is not for messages: "1,000 examples"
}

// enter begins a run of a program when no other is under way, and looks that all processes begin the same one, with
// what is to be alike: one message for both.
func (a *across) enter(p *Program, runs int, alike []Alike) (leave func(), err error) {
	a.runs.Lock()
	if err := a.sameRun(p, runs, alike); err != nil {
		a.runs.Unlock()
		return nil, err
	}
	return a.runs.Unlock, nil
}

func (a *across) sameRun(p *Program, runs int, alike []Alike) error {
	number := a.number.Add(1)
	key := fnv.New64a()
	fmt.Fprintln(key, p.name, runs, number)
	what := fmt.Sprintf("run %d of a program, %s, %d steps", number, p.name, runs)
	shown := what
	for _, x := range alike {
		shown += ", and of " + x.What
	}
	sums := []int64{int64(key.Sum64())}
	for _, x := range alike {
		of := fnv.New64a()
		_ = binary.Write(of, binary.LittleEndian, x.Sums) // never fails
		sums = append(sums, int64(of.Sum64()))
	}
	equal, err := a.job.EachSame(shown, sums...)
	switch {
	case err != nil:
		return err
	case !equal[0]:
		return disagree(a.job, what, "")
	}
	for i, x := range alike {
		if !equal[i+1] {
			return unlike(a.job, x)
		}
	}
	return nil
}

// unlike is the error of processes that do not have x alike, with the ranks and the parts that differ from rank 0's.
func unlike(job *dist.Job, x Alike) error {
	type part struct {
		Part
		Sum int64
	}
	own := make([]part, len(x.Sums))
	for i, named := range x.Parts() {
		own[i] = part{named, x.Sums[i]}
	}
	text, err := json.Marshal(own)
	if err != nil {
		return err
	}
	all, err := job.AllGather(text)
	if err != nil {
		return err
	}
	ranks := make([][]part, len(all))
	for r := range all {
		if err := json.Unmarshal(all[r], &ranks[r]); err != nil || len(ranks[r]) != len(own) {
			return fmt.Errorf("%w: rank %d compares %d parts of it, this one %d (%v)", x.Err, r, len(ranks[r]), len(own), err)
		}
	}
	var said []string
	for i, zero := range ranks[0] {
		var others []string
		has := ""
		for r := range ranks {
			if other := ranks[r][i]; other.Sum != zero.Sum {
				others = append(others, fmt.Sprint(r))
				if has == "" && other.Is != "" {
					has = fmt.Sprintf(" (rank %d has %s, rank 0 %s)", r, other.Is, zero.Is)
				}
			}
		}
		switch {
		case len(others) == 1:
			said = append(said, fmt.Sprintf("rank %s differs from rank 0 in %s%s", others[0], zero.Name, has))
		case len(others) > 1:
			said = append(said, fmt.Sprintf("ranks %s differ from rank 0 in %s%s", strings.Join(others, ", "), zero.Name, has))
		}
	}
	return fmt.Errorf("%w: %s", x.Err, strings.Join(said, "; "))
}

func (a *across) close() error {
	if a == nil {
		return nil
	}
	return a.by.close()
}
