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

	"github.com/lazo-ml/lazo/internal/joined"
	"github.com/lazo-ml/lazo/xla/mpi"
)

// Job is one process's view of its job: one of Size ranks, which run the same program. [Join] makes it. Its methods may
// be called by several goroutines, but all ranks must make the calls that wait for others (Agree, Barrier, Broadcast,
// AllGather, Close) in the same order.
type Job struct {
	rank, size int
	launcher   string
	name       string // of the job
	attempt    string
	peers      []peer // by rank
	deadline   time.Duration
	world      *mpi.World // nil: no MPI
	hub        *hub       // of rank 0 of many
	spoke      *spoke     // of any other rank
	values     values     // of the store, at rank 0
	over       chan struct{}
	onFailure  func(*Failure)
	note       string // a file that is there while this rank has not left; "": none

	activity activity
	together sync.Mutex // one call that waits for others at a time
	ending   sync.Once
	closing  sync.Once
	closed   error
	leaving  sync.Once
	left     atomic.Bool // by Close
}

// Rank is this process's number, from 0 to Size-1.
func (j *Job) Rank() int { return j.rank }

// Size is the number of processes, at least 1.
func (j *Job) Size() int { return j.size }

// Name is the job's name, and Attempt the number of its start, as the launcher or $LAZO_JOB and $LAZO_ATTEMPT say them;
// "" where none does.
func (j *Job) Name() string { return j.name }

// Attempt is the number of the job's start: see [Job.Name].
func (j *Job) Attempt() string { return j.attempt }

// LocalRank is this process's number among those of its host, from 0 to LocalSize-1.
func (j *Job) LocalRank() int { return j.peers[j.rank].LocalRank }

// LocalSize is the number of the job's processes on this host.
func (j *Job) LocalSize() int { return j.peers[j.rank].LocalSize }

// MPI is the library's world of this job, nil where the job has one process or goes by its control connections alone.
func (j *Job) MPI() *mpi.World { return j.world }

// String says which rank this is, on which host, by what the ranks are joined, and what will slow the job down, such as
// a launcher that binds each process to a processor.
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

// At notes what this rank is doing, for the messages of a job that ends: its step, and a word for what follows, such as
// "data"; "" keeps the last word. It costs an atomic store or two.
func (j *Job) At(step int64, doing string) { j.activity.set(step, doing) }

// Note has the messages of a job that ends, and of calls that differ, say text of this rank, in brackets: what may be
// why it does not what the others do. It replaces what was noted before; "" takes it back.
func (j *Job) Note(text string) { j.activity.note.Store(&text) }

// Busy announces a phase on this rank that may take longer than the deadline, such as "compile" or "save": the others
// wait that long for it, and the deadline more. done ends it.
func (j *Job) Busy(doing string, limit time.Duration) (done func()) {
	return j.activity.begin(doing, limit)
}

// beat is what this rank is doing.
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

// Calls is how many calls that wait for the others this rank has begun: Agree, Same, Barrier, Broadcast, AllGather and
// Close, by the program or by those that it runs on.
func (j *Job) Calls() uint64 {
	j.activity.mu.Lock()
	defer j.activity.mu.Unlock()
	return j.activity.calls
}

// Agree makes each word the largest that any rank has there, in place: what a clock, a signal or an error decides is
// decided by all ranks. words has the same length on all ranks; another length is an error on all of them. A job of one
// process has nothing to agree on.
func (j *Job) Agree(words []int64) error { return j.agree("", words) }

// AgreeOn is Agree with the words in which messages say what is agreed on, "a batch for the next step". They are not
// compared: they may be others on each rank.
func (j *Job) AgreeOn(what string, words []int64) error { return j.agree("Agree on "+what, words) }

func (j *Job) agree(shown string, words []int64) error {
	return j.call(part{text: fmt.Sprintf("Agree of %d words", len(words)), shown: shown, words: words}, func() error {
		if len(words) <= freeWords {
			return nil // they went with the comparison
		}
		return j.world.Max(words)
	}, nil)
}

// Same tells whether all ranks give the same number, such as a checksum of what they are about to do; what says in
// messages of which thing, "the next batch".
func (j *Job) Same(what string, n int64) (bool, error) {
	same, err := j.EachSame(what, n)
	return same[0], err
}

// EachSame is Same for several numbers at once, for each of which it tells whether all ranks give the same. All ranks
// give equally many.
func (j *Job) EachSame(what string, numbers ...int64) (same []bool, err error) {
	words := make([]int64, 0, 2*len(numbers))
	for _, n := range numbers {
		n &= math.MaxInt64 // the least number has no negative
		words = append(words, n, -n)
	}
	err = j.agree("the comparison of "+what, words)
	for i := range numbers {
		same = append(same, words[2*i] == -words[2*i+1])
	}
	return same, err
}

// Barrier waits until all ranks have come to the barrier of that name. Another name on another rank is an error on all.
func (j *Job) Barrier(what string) error {
	return j.call(part{text: fmt.Sprintf("Barrier %q", what)}, nothing, nil)
}

// Broadcast gives rank 0's data, of any length, on all ranks. What other ranks hand over is not looked at.
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

// AllGather gives the parts of all ranks, of any lengths, by rank, on all ranks.
func (j *Job) AllGather(data []byte) (parts [][]byte, err error) {
	if j.size == 1 {
		return [][]byte{slices.Clone(data)}, nil
	}
	longest := []int64{int64(len(data))}
	err = j.call(part{text: "AllGather", words: longest, data: &data}, func() error {
		// Parts of one length, each behind its own.
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

// freeWords are those that go with the comparison of calls: as many as a loop agrees on.
const freeWords = 20

// part is a rank's part in a call that all ranks make.
type part struct {
	text  string        // what is called, the same on all ranks
	shown string        // what messages have in its place, unless it is ""
	limit time.Duration // how long the others may take to come, if longer than the deadline
	words []int64       // of which all ranks get the largest, but for the control connections where there are data
	data  *[]byte       // what goes to all ranks by the control connections, in place of the words; nil: none
}

// call makes a call that all ranks make. By MPI, one exchange of a fixed length compares what they call, and carries
// the first words; then byMPI does what is left. By the control connections, taken gets the data of all ranks.
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

// name is what messages call it.
func (p *part) name() string { return cmp.Or(p.shown, p.text) }

// shown is what ranks whose calls differ are told of this one's.
func (j *Job) shown(p part) string {
	if note := j.activity.noted(); note != "" {
		return p.name() + " (" + note + ")"
	}
	return p.name()
}

func (j *Job) byMPI(p part, rest func() error) error {
	sum := fnv.New64a()
	sum.Write([]byte(p.text)) // never fails
	hash := int64(sum.Sum64() >> 1)
	var head [2 + freeWords]int64
	for i := range head {
		head[i] = math.MinInt64
	}
	head[0], head[1] = hash, -hash // their maxima are the largest and the negative of the smallest
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
		return fmt.Errorf("%w: %s", ErrDisagree, result.Text) // the calls differ
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

// differ asks all ranks what they called.
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

// Fail ends the job at once: all ranks exit with [ExitFailed], and the message has this rank's error. It does not
// return where there are other ranks; in a job of one process, or one that was closed, it does nothing. [Job.Leave] is
// for the error that a program returns from its main.
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
	time.Sleep(2 * lastWords) // rank 0 ends this process, when it has said why
	f.Here = true
	j.end(f)
}

// closeWithin is how many deadlines a rank may come later to Close than the others: behind the last step, one writes
// what the others do not.
const closeWithin = 6

// Close leaves the job, when all ranks have come to it: the program may end then, and no earlier. A rank that comes
// more than six deadlines behind the others, without [Job.Busy], ends the job as one that is stuck. A job of one
// process has nothing to leave. Deferred in a program that panics it does nothing, so that the panic ends this process
// and is seen at once: the others are told that this rank was lost.
func (j *Job) Close() error {
	if j.size == 1 || panicking() {
		return nil
	}
	j.closing.Do(func() { j.closed = j.close() })
	return j.closed
}

// Leave is Close for a program that err ends, if it is not nil: the others are told why. Where the programs of all
// ranks end by errors, as behind a run that one of them has failed, each goes with its own, which is returned. Where
// another rank waits for this one, or does not end within six deadlines, the job ends on all of them as by [Job.Fail],
// and Leave does not return. An error of Close itself, as where another rank makes another call, is told too, by Leave
// alone. In a job of one process it gives err back.
//
//	defer func() { err = job.Leave(err) }()
//
// [loop.Exit] calls it.
//
// [loop.Exit]: https://pkg.go.dev/github.com/lazo-ml/lazo/loop#Exit
func (j *Job) Leave(err error) error {
	if err == nil {
		err = j.Close()
	}
	if j.size == 1 || err == nil {
		return err
	}
	j.closing.Do(func() {}) // Close has nothing left to do
	j.leaving.Do(func() {
		if j.left.Load() {
			return
		}
		defer j.announce(func() string { return "for the others to end, who are to be told: " + err.Error() })()
		if j.hub != nil {
			j.hub.leave(err.Error())
		} else {
			j.spoke.leave(err.Error())
		}
		j.gone()
	})
	return err
}

// panicking tells whether a panic runs the deferred functions that called this one.
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

// gone notes that this process has left the job.
func (j *Job) gone() {
	j.left.Store(true)
	close(j.over)
	if j.note != "" {
		_ = os.Remove(j.note) // else the launcher says that this rank has not left
	}
	joined.Forget(j)
}

func (j *Job) close() error {
	if err := j.call(part{text: "Close", limit: closeWithin * j.deadline}, nothing, nil); err != nil {
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
	case <-time.After(max(j.deadline, 10*time.Second)):
		return fmt.Errorf("dist: Close: MPI_Finalize does not end: another rank died while it left")
	}
}
