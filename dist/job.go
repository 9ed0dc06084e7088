package dist

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/lazo-ml/lazo/internal/joined"
	"github.com/lazo-ml/lazo/internal/mpi"
	"github.com/lazo-ml/lazo/internal/spmd"
)

// Job is one process's view of its job: Size ranks that run the same program. Methods may be called concurrently, but
// Agree, Barrier, Broadcast, AllGather and Close in one order on all ranks.
type Job struct {
	rank, size int
	launcher   string
	name       string
	attempt    string
	peers      []peer
	deadline   time.Duration
	world      *mpi.World
	hub        *hub   // at rank 0
	spoke      *spoke // at other ranks
	values     values // of rank 0's store
	over       chan struct{}
	onFailure  func(*Failure)
	note       string // until this rank leaves

	activity activity
	together sync.Mutex
	ending   sync.Once
	closing  sync.Once
	closed   error
	leaving  sync.Once
	left     atomic.Bool // by Close
}

// Rank is from 0 to Size-1.
func (j *Job) Rank() int { return j.rank }

// Size is at least 1.
func (j *Job) Size() int { return j.size }

func (j *Job) Name() string { return j.name }

// Attempt is the number of the job's start from the launcher or $LAZO_ATTEMPT, or "".
func (j *Job) Attempt() string { return j.attempt }

// LocalRank is this process's number on its host, from 0.
func (j *Job) LocalRank() int { return j.peers[j.rank].LocalRank }

// LocalSize is the number of the job's processes on this host.
func (j *Job) LocalSize() int { return j.peers[j.rank].LocalSize }

// Handlers returns the C functions, by name, by which programs on CPUs exchange values over MPI. There are none without
// MPI.
func (j *Job) Handlers() map[string]unsafe.Pointer {
	if j.world == nil {
		return nil
	}
	return j.world.Handlers()
}

// Rewrite turns a program that XLA has divided over the job's processes into one process's, in which calls of
// [Job.Handlers] replace XLA's collectives. Both are serialized HloModuleProtos.
func (j *Job) Rewrite(module []byte) ([]byte, error) {
	rewritten, _, err := spmd.Rewrite(module, j.size)
	return rewritten, err
}

// String describes the rank, its host, how the ranks are joined, and slow settings, like binding each process to one
// processor.
func (j *Job) String() string {
	if j.size == 1 {
		return "one process"
	}
	by := "control connections, no MPI"
	if j.world != nil {
		by = j.world.Library().Version()
	}
	text := fmt.Sprintf("rank %d of %d, %d of %d on host %s, started by %s, joined by %s", j.rank, j.size, j.LocalRank(), j.LocalSize(), j.peers[j.rank].Host, j.launcher, by)
	if j.world != nil {
		for _, warning := range j.world.Warnings() {
			text += "; " + warning
		}
	}
	return text
}

// At records this rank's step and activity, like "data", for messages of failures, with one or two atomic stores. ""
// keeps the last activity.
func (j *Job) At(step int64, doing string) { j.activity.set(step, doing) }

// Note sets a text that messages about failures and differing calls show for this rank; "" removes it.
func (j *Job) Note(text string) { j.activity.note.Store(&text) }

// Busy announces a phase that may take longer than the deadline, like "compile" or "save". The others wait for limit
// plus the deadline. done ends the phase.
func (j *Job) Busy(doing string, limit time.Duration) (done func()) {
	return j.activity.begin(doing, limit)
}

func (j *Job) beat() beat {
	b := j.activity.beat()
	if j.world != nil {
		e := j.world.Exchanges()
		b.Begun = e.Begun
		if b.Waits = e.Begun > e.Ended; b.Waits {
			b.Kind, b.Site, b.ExchangeFor, b.Bytes = e.Kind, e.Site, e.Since, e.Bytes
		}
	}
	return b
}

// Calls counts the calls of Agree, Same, Barrier, Broadcast, AllGather and Close that this rank has begun, also in
// lazo.
func (j *Job) Calls() uint64 {
	j.activity.mu.Lock()
	defer j.activity.mu.Unlock()
	return j.activity.calls
}

// Agree sets each word to its maximum over all ranks, in place. Use it for decisions that depend on a clock, a signal
// or an error.
func (j *Job) Agree(words []int64) error { return j.agree("", words) }

// AgreeOn is [Job.Agree] with a description for messages, like "a batch for the next step", perhaps different between
// ranks.
func (j *Job) AgreeOn(what string, words []int64) error { return j.agree("Agree on "+what, words) }

func (j *Job) agree(shown string, words []int64) error {
	return j.call(part{text: fmt.Sprintf("Agree of %d words", len(words)), shown: shown, words: words}, func() error {
		if len(words) <= freeWords {
			return nil // sent with the comparison
		}
		return j.world.Max(words)
	}, nil)
}

// Same reports whether all ranks pass the same number, like a checksum, except for its sign bit. what describes it in
// messages ("the next batch").
func (j *Job) Same(what string, n int64) (bool, error) {
	same, err := j.EachSame(what, n)
	return same[0], err
}

// EachSame is [Job.Same] for several numbers, equally many on all ranks.
func (j *Job) EachSame(what string, numbers ...int64) (same []bool, err error) {
	words := make([]int64, 0, 2*len(numbers))
	for _, n := range numbers {
		n &= math.MaxInt64 // MinInt64 has no negative
		words = append(words, n, -n)
	}
	err = j.agree("the comparison of "+what, words)
	for i := range numbers {
		same = append(same, words[2*i] == -words[2*i+1])
	}
	return same, err
}

// Barrier waits until all ranks have called it.
func (j *Job) Barrier(what string) error {
	return j.call(part{text: fmt.Sprintf("Barrier %q", what)}, nothing, nil)
}

// Broadcast returns rank 0's data on all ranks.
func (j *Job) Broadcast(data []byte) (_ []byte, err error) {
	if j.size == 1 {
		return slices.Clone(data), nil
	}
	length := []int64{-1}
	if j.rank == 0 {
		length[0] = int64(len(data))
	} else {
		data = nil
	}
	err = j.call(part{text: "Broadcast", words: length, data: &data}, func() error {
		if j.rank != 0 {
			data = make([]byte, length[0])
		} else {
			data = slices.Clone(data)
		}
		for part := range slices.Chunk(data, mostMessage) {
			if err := j.world.Broadcast(0, part); err != nil {
				return err
			}
		}
		return nil
	}, func(parts [][]byte) { data = slices.Clone(parts[0]) })
	if err != nil {
		return nil, err
	}
	return data, nil
}

// AllGather returns the data of all ranks, by rank. Lengths may differ.
func (j *Job) AllGather(data []byte) (parts [][]byte, err error) {
	if j.size == 1 {
		return [][]byte{slices.Clone(data)}, nil
	}
	longest := []int64{int64(len(data))}
	err = j.call(part{text: "AllGather", words: longest, data: &data}, func() error {
		// parts of one length, each preceded by its own
		own := make([]byte, 8+longest[0])
		binary.LittleEndian.PutUint64(own, uint64(len(data)))
		copy(own[8:], data)
		all, err := j.world.AllGather(own)
		if err != nil {
			return err
		}
		for block := range slices.Chunk(all, len(own)) {
			n := binary.LittleEndian.Uint64(block)
			if n > uint64(longest[0]) {
				return fmt.Errorf("a rank sent a part of %d bytes, expected at most %d", n, longest[0])
			}
			parts = append(parts, block[8:8+n:8+n])
		}
		return nil
	}, func(all [][]byte) { parts = all })
	if err != nil {
		return nil, err
	}
	return parts, nil
}

// freeWords go with the comparison of calls: enough for a loop.
const freeWords = 20

type part struct {
	text  string
	shown string
	limit time.Duration // how late others may be, above the deadline
	words []int64
	data  *[]byte // over control connections, instead of words
}

// call runs a call of all ranks. With MPI, one exchange of fixed length compares the calls and carries the first
// words; byMPI the rest. Otherwise taken receives all data.
func (j *Job) call(p part, byMPI func() error, taken func(parts [][]byte)) error {
	if j.size == 1 {
		return nil
	}
	j.together.Lock()
	defer j.together.Unlock()
	if j.left.Load() {
		return fmt.Errorf("dist: %s: the job is closed", p.text)
	}
	j.activity.enter(p.name(), p.limit)
	defer j.activity.leave()
	meet := func() error { return j.byControl(p, taken) }
	if j.world != nil {
		meet = func() error { return j.byMPI(p, byMPI) }
	}
	if err := meet(); err != nil {
		return fmt.Errorf("dist: %s: %w", p.name(), err)
	}
	return nil
}

func (p *part) name() string { return cmp.Or(p.shown, p.text) }

func (j *Job) shown(p part) string {
	if note := j.activity.noted(); note != "" {
		return p.name() + " (" + note + ")"
	}
	return p.name()
}

func (j *Job) byMPI(p part, rest func() error) error {
	sum := fnv.New64a()
	sum.Write([]byte(p.text))
	hash := int64(sum.Sum64() >> 1)
	var head [2 + freeWords]int64
	for i := range head {
		head[i] = math.MinInt64
	}
	head[0], head[1] = hash, -hash // maxima: the largest and minus the smallest
	carried := p.words[:0]
	if len(p.words) <= freeWords {
		carried = p.words
	}
	copy(head[2:], carried)
	if err := j.world.Max(head[:]); err != nil {
		return err
	}
	if head[0] != -head[1] {
		return j.differ(j.shown(p))
	}
	copy(carried, head[2:])
	return rest()
}

func (j *Job) byControl(p part, taken func(parts [][]byte)) error {
	m := message{Kind: kindCall, Call: p.text, Shown: j.shown(p), Words: p.words}
	if p.data != nil {
		m.Words, m.Data = nil, *p.data
	}
	var result message
	if j.hub != nil {
		result = j.hub.call(m)
	} else {
		result = j.spoke.call(m)
	}
	switch {
	case result.Text != "":
		return fmt.Errorf("%w: %s", ErrDisagree, result.Text)
	case p.data == nil && len(result.Words) != len(p.words):
		return fmt.Errorf("%d words came, expected %d", len(result.Words), len(p.words))
	case p.data == nil:
		copy(p.words, result.Words)
		return nil
	case len(result.Parts) != j.size:
		return fmt.Errorf("%d parts came, expected %d", len(result.Parts), j.size)
	}
	taken(result.Parts)
	return nil
}

func (j *Job) differ(text string) error {
	const length = 500
	own := make([]byte, length)
	copy(own, text)
	all, err := j.world.AllGather(own)
	if err != nil {
		return err
	}
	var texts []string
	for one := range slices.Chunk(all, length) {
		texts = append(texts, strings.ToValidUTF8(strings.TrimRight(string(one), "\x00"), ""))
	}
	return fmt.Errorf("%w: %s", ErrDisagree, differ(texts))
}

func nothing() error { return nil }

// Fail ends the job at once: all ranks exit with [ExitFailed], and the message has err. It does not return, but does
// nothing in a job of one process or a closed one. For an error that main returns use [Job.Leave].
func (j *Job) Fail(err error) {
	if j.size == 1 || j.left.Load() {
		return
	}
	b := j.beat()
	f := j.failure(ExitFailed, j.rank, b, 0, fmt.Sprintf("%s failed at step %d: %v", j.who(j.rank), b.Step, err))
	if j.hub != nil {
		j.hub.fail(f)
		return
	}
	j.spoke.send(message{Kind: kindFail, Failure: f})
	time.Sleep(2 * lastWords) // rank 0 ends this process
	f.Here = true
	j.end(f)
}

// closeWithin is at least a minute: one rank may write files.
func (j *Job) closeWithin() time.Duration { return max(j.deadline, time.Minute) }

// Close waits until all ranks have called it, then leaves the job. Call it last: a program must not end before. A
// rank later than the deadline, and than a minute, without [Job.Busy], ends the job as stuck. In a panicking program
// a deferred Close does nothing: the others report a lost rank.
func (j *Job) Close() error {
	if j.size == 1 || panicking() {
		return nil
	}
	j.closing.Do(func() { j.closed = j.close() })
	return j.closed
}

// Leave is [Job.Close] if err is nil. Otherwise it ends this rank's part with err, which it returns. If the programs
// of all ranks end with errors, each returns its own. If another rank waits for this one or does not end within the
// time of Close, the job ends as by [Job.Fail]. An error of Close is treated like err. loop.Exit calls Leave.
//
//	defer func() { err = job.Leave(err) }()
func (j *Job) Leave(err error) error {
	if err == nil {
		err = j.Close()
	}
	if j.size == 1 || err == nil {
		return err
	}
	j.closing.Do(func() {})
	j.leaving.Do(func() {
		if j.left.Load() {
			return
		}
		defer j.announce(func() string { return "for the other ranks to end, after sending them: " + err.Error() })()
		if j.hub != nil {
			j.hub.leave(err.Error())
		} else {
			j.spoke.leave(err.Error())
		}
		j.gone()
	})
	return err
}

// panicking: a panic runs the caller's deferred functions.
func panicking() bool {
	calls := make([]uintptr, 64)
	frames := runtime.CallersFrames(calls[:runtime.Callers(2, calls)])
	for {
		f, more := frames.Next()
		if f.Function == "runtime.gopanic" {
			return true
		}
		if !more {
			return false
		}
	}
}

func (j *Job) gone() {
	j.left.Store(true)
	close(j.over)
	if j.note != "" {
		_ = os.Remove(j.note) // the launcher reports a file that is left
	}
	joined.Forget(j)
}

func (j *Job) close() error {
	if err := j.call(part{text: "Close", limit: j.closeWithin()}, nothing, nil); err != nil {
		return err
	}
	j.gone()
	if j.hub != nil {
		j.hub.close()
	} else {
		j.spoke.close()
	}
	if j.world == nil {
		return nil
	}
	ended := make(chan error, 1)
	go func() { ended <- j.world.Finalize() }()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("dist: Close: %w", err)
		}
		return nil
	case <-time.After(j.deadline + 10*time.Second): // rank 0 reports others first
		return fmt.Errorf("dist: Close: MPI_Finalize does not return: another rank died during Close, or the link to it was cut")
	}
}
