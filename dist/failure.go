package dist

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// Exit codes of the processes of a job that ended. They lie above those that shells and Go's runtime use.
const (
	ExitLost     = 75 // a rank died, ended before Close, was stopped, or its link was cut
	ExitStuck    = 76 // a rank did not come where the others wait for it, within the deadline
	ExitDisagree = 77 // ranks wait for each other at different places: they do not run the same
	ExitFailed   = 78 // a rank ended the job by [Job.Fail]
)

// ErrDisagree: the ranks of a job call, compile or run different things.
var ErrDisagree = errors.New("the ranks disagree")

// Failure is why a job ended.
type Failure struct {
	Code  int           // one of the exit codes
	Rank  int           // whose fault it is, as far as can be told
	Host  string        // where it runs
	PID   int           // its process there
	Step  int64         // its step, as [Job.At] said last
	Doing string        // what it was doing, as [Job.At] and [Job.Busy] said last
	For   time.Duration // for how long
	Text  string        // the message, one line
	Stack string        // of the goroutines of the rank that is stuck; "" where it could not answer
	// Here tells whether this is the one process that says it: rank 0, or the lowest rank that is left.
	Here bool
}

// Error is the whole message: its line, and the stack behind it.
func (f *Failure) Error() string {
	if f.Stack == "" {
		return f.Text
	}
	return f.Text + "\n" + strings.TrimRight(f.Stack, "\n")
}

// exit ends this process, as every rank does when the job has failed. It is a variable for tests alone.
var exit = os.Exit

// end says what happened and ends the process. The first failure counts.
func (j *Job) end(f *Failure) {
	j.ending.Do(func() {
		j.say(f)
		exit(f.Code)
	})
}

// say says what happened, and waits no longer than lastWords for who reads it. It is the end of a program, so it prints
// where nobody has taken the message.
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

// patient is how long [Join] waits before it says so, and again is how long until it says so once more.
const (
	patient = 10 * time.Second
	again   = time.Minute
)

// announce says to the standard error what [Join] waits for, now and then, until it is stopped: nobody can tell from
// outside whether a process that is silent waits for another one that was never started.
func (j *Job) announce(what func() string) (stop func()) { return j.announceTo(os.Stderr, what) }

func (j *Job) announceTo(w io.Writer, what func() string) (stop func()) {
	since, stopped := time.Now(), make(chan struct{})
	host, _ := os.Hostname() // Join has asked for it before
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

// lastWords is how long the message of a failure may take, or the function of [OnFailure].
const lastWords = 2 * time.Second

// who names a rank in a message.
func (j *Job) who(rank int) string {
	p := j.peers[rank]
	return fmt.Sprintf("rank %d (host %s, pid %d)", rank, p.Host, p.PID)
}

// failure is one of a rank whose last sign of life is b.
func (j *Job) failure(code, rank int, b beat, age time.Duration, text string) *Failure {
	f := &Failure{Code: code, Rank: rank, Step: b.Step, Doing: b.doing(), For: round(b.DoingFor + age)}
	if rank < len(j.peers) {
		f.Host, f.PID = j.peers[rank].Host, j.peers[rank].PID
	}
	f.Text = "the job of " + fmt.Sprint(j.size) + " ranks has ended: " + text
	return f
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
