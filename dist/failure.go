package dist

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/lazo-ml/lazo/internal/joined"
)

// Exit codes of a failed job, different from those of shells and Go's runtime.
const (
	ExitLost     = 75 // a rank was lost
	ExitStuck    = 76 // a rank was stuck
	ExitDisagree = 77 // ranks wait for each other at different places
	ExitFailed   = 78 // a rank called [Job.Fail]
)

// ErrDisagree means that a job's ranks call, compile or run different things.
var ErrDisagree = joined.ErrDisagree

// Failure is the reason why a job ended.
type Failure struct {
	Code  int
	Rank  int    // the rank that probably caused it
	Host  string // its host
	PID   int    // its process
	Step  int64  // from [Job.At], of a lost rank that of its last heartbeat
	Doing string // from [Job.At] and [Job.Busy]
	For   time.Duration
	Text  string // the message, one line
	Stack string
	// Here is true in the one process that reports the failure.
	Here bool
}

// Error has the stack too.
func (f *Failure) Error() string {
	if f.Stack == "" {
		return f.Text
	}
	return f.Text + "\n" + strings.TrimRight(f.Stack, "\n")
}

var exit = os.Exit

func (j *Job) end(f *Failure) {
	j.ending.Do(func() {
		j.say(f)
		exit(f.Code)
	})
}

func (j *Job) say(f *Failure) {
	if j.onFailure == nil && !f.Here {
		return
	}
	said := make(chan struct{})
	go func() {
		defer close(said)
		if j.onFailure != nil {
			j.onFailure(f)
		} else {
			fmt.Fprintf(os.Stderr, "lazo: %v\n", f)
		}
	}()
	select {
	case <-said:
	case <-time.After(lastWords):
	}
}

const (
	patient = 10 * time.Second
	again   = time.Minute
)

func standardError() io.Writer { return os.Stderr }

func (j *Job) announce(what func() string) (stop func()) { return j.announceTo(standardError(), what) }

func (j *Job) announceTo(w io.Writer, what func() string) (stop func()) {
	since, stopped := time.Now(), make(chan struct{})
	host, _ := os.Hostname() // checked by Join
	who := fmt.Sprintf("rank %d of %d (host %s, pid %d)", j.rank, j.size, host, os.Getpid())
	go func() {
		for next := patient; ; next = again {
			select {
			case <-stopped:
				return
			case <-time.After(next):
				fmt.Fprintf(w, "lazo: %s has waited for %v, since %s: %s\n", who, time.Since(since).Round(time.Second), since.Format(time.TimeOnly), what())
			}
		}
	}()
	return sync.OnceFunc(func() { close(stopped) })
}

const lastWords = 2 * time.Second

func (j *Job) who(rank int) string {
	p := j.peers[rank]
	return fmt.Sprintf("rank %d (host %s, pid %d)", rank, p.Host, p.PID)
}

func (j *Job) failure(code, rank int, b beat, age time.Duration, text string) *Failure {
	f := &Failure{Code: code, Rank: rank, Step: b.Step, Doing: b.doing(), For: round(b.DoingFor + age)}
	if rank < len(j.peers) {
		f.Host, f.PID = j.peers[rank].Host, j.peers[rank].PID
	}
	f.Text = j.ended() + text
	return f
}

func (j *Job) named() string { return fmt.Sprintf("the job of %d ranks", j.size) }

func (j *Job) ended() string { return j.named() + " has ended: " }

func round(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
