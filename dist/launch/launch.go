package launch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/internal/child"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/xla/install"
)

// Options say what [Run] starts.
type Options struct {
	// N is the number of ranks, at least 1.
	N int
	// Command is the program and its arguments, the same on all ranks.
	Command []string
	// Mpirun is the launcher, the path or the name in PATH of Open MPI's or MPICH's mpirun. "": that of the MPI that
	// lazo installed.
	Mpirun string
	// NoMPI starts the ranks without MPI: what they agree on goes by the control connections, and no exchange of a
	// program on the CPU is possible.
	NoMPI bool
	// Env are further variables, "NAME=value".
	Env []string
	// Dir is the folder that the ranks are started in; "": this process's.
	Dir string
	// Stdin is rank 0's standard input; nil: none.
	Stdin io.Reader
	// Stdout and Stderr take what the ranks write; nil drops it. Without Verbose, Stdout is rank 0's alone, lines of the
	// other ranks' standard error have their number before them, and a warning or an error that several of them have (a
	// line with the word WARN or ERROR, or one of the standard logger) is there once; Stderr says behind a job that failed
	// how many had it.
	Stdout, Stderr io.Writer
	// Verbose gives all ranks' output, each line with its rank, and what mpirun says.
	Verbose bool
	// Restarts is how many times a job that failed is started again. The program sees the number of its start, from 0, in
	// $LAZO_ATTEMPT.
	Restarts int
	// Min lets each restart have a rank fewer, down to Min; 0: all have N.
	Min int
	// Grace is how long the ranks have to end once the context ended or one has failed, before they are killed; 0: 30 s.
	Grace time.Duration

	said *sayings
}

// ExitError says that a job failed.
type ExitError struct {
	// Code is that of the first rank that failed, 128 and the signal's number for one that a signal ended. Package dist
	// has the codes of a job that ended because a rank was lost or stuck; [dist.ExitLost] is also that of a rank that
	// ended with 0 while the others went on.
	Code int
	// Attempts is how many times the job was started.
	Attempts int
	// Said is what mpirun itself wrote.
	Said string
}

func (e *ExitError) Error() string {
	text := fmt.Sprintf("launch: the job ended with exit code %d", e.Code)
	if e.Attempts > 1 {
		text += fmt.Sprintf(", after %d starts", e.Attempts)
	}
	return text
}

const defaultGrace = 30 * time.Second

// told is how long ranks have that know of the end of their job: more than the last words that package dist lets them
// have.
const told = 3 * time.Second

// stuck is how long mpirun may take to end after its last rank: Open MPI's deadlocks now and then where several ranks
// fail at once.
const stuck = 10 * time.Second

// Run starts the ranks and waits until all have ended, or mpirun has, which kills those that are left. An error of the
// job is an [*ExitError]. When the context ends, the ranks get the signal that ended it, where its cause is a
// [*loop.SignalError], else SIGTERM, and are killed when the time of grace is over.
func Run(ctx context.Context, o Options) error {
	switch {
	case o.N < 1:
		return fmt.Errorf("launch: %d ranks, expected at least 1", o.N)
	case len(o.Command) == 0:
		return errors.New("launch: no command")
	case o.Restarts < 0 || o.Min < 0 || o.Min > o.N:
		return fmt.Errorf("launch: %d restarts on at least %d of %d ranks: expected numbers from 0, and no more than there are", o.Restarts, o.Min, o.N)
	case o.NoMPI && o.Mpirun != "":
		return fmt.Errorf("launch: mpirun %s, and no MPI: one of the two", o.Mpirun)
	}
	if o.Stdout == nil {
		o.Stdout = io.Discard
	}
	if o.Stderr == nil {
		o.Stderr = io.Discard
	}
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	o.said = newSayings()
	by, err := o.launcher(ctx)
	if err != nil {
		return err
	}
	job := make([]byte, 8)
	_, _ = rand.Read(job) // never fails
	for attempt, n := 0, o.N; ; attempt++ {
		env := append(slices.DeleteFunc(os.Environ(), ofRank), o.Env...)
		env = append(env, fmt.Sprintf("LAZO_ATTEMPT=%d", attempt), "LAZO_JOB="+hex.EncodeToString(job))
		err := by.start(ctx, n, env)
		if said := o.said.sum(); err != nil && said != "" {
			fmt.Fprint(o.Stderr, said)
		}
		failed := (*ExitError)(nil)
		if !errors.As(err, &failed) || ctx.Err() != nil || attempt == o.Restarts {
			if failed != nil {
				failed.Attempts = attempt + 1
			}
			return err
		}
		if o.Min > 0 && n > o.Min {
			n--
		}
		fmt.Fprintf(o.Stderr, "lazo run: start %d of %d ended with exit code %d: again, on %d ranks\n", attempt+1, o.Restarts+1, failed.Code, n)
	}
}

// ofRank tells of a variable whether it would make each process a rank of another job than the one that begins.
func ofRank(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return slices.Contains([]string{"LAZO_RANK", "LAZO_SIZE", "LAZO_COORDINATOR", "LAZO_LISTENER", "LAZO_LOCAL_RANK", "LAZO_LOCAL_SIZE", "LAZO_RUN"}, name)
}

// starter starts n ranks once, and waits for them.
type starter interface {
	start(ctx context.Context, n int, env []string) error
}

func (o *Options) launcher(ctx context.Context) (starter, error) {
	if o.NoMPI {
		return &alone{o}, nil
	}
	m := &mpirun{Options: o, path: o.Mpirun}
	if o.Mpirun == "" {
		found, err := install.Find(install.MPI, "")
		if err != nil {
			return nil, fmt.Errorf("launch: %w: lazo install mpi, or name an mpirun", err)
		}
		m.path, m.library = found.Launcher(), found.Path
	}
	path, err := exec.LookPath(m.path)
	if err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	m.path = path
	said, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	switch {
	case bytes.Contains(said, []byte("Open MPI")) || bytes.Contains(said, []byte("OpenRTE")):
		m.open = true
	case bytes.Contains(said, []byte("HYDRA")):
	default:
		return nil, fmt.Errorf("launch: %s --version is neither Open MPI's nor MPICH's (%v): %.200q", path, err, said)
	}
	return m, nil
}

// mpirun starts ranks by MPI's launcher.
type mpirun struct {
	*Options
	path    string
	library string // of MPI, for $LAZO_MPI; "" where the user's own mpirun is to find it
	open    bool   // it is Open MPI's
}

// wrapper is what mpirun starts in place of the command: it leads each rank's output to pipes of its own, which mpirun
// would mix, and notes the process for signals. Its first argument is the folder of the pipes.
const wrapper = `d=$1; shift; r=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; echo $$ >"$d/$r.pid"; exec "$@" >"$d/$r.1" 2>"$d/$r.2"`

func (m *mpirun) start(ctx context.Context, n int, env []string) (err error) {
	dir, err := os.MkdirTemp("", "lazo-run-*")
	if err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	// To a file and not through a pipe: where this process is killed, mpirun still has to end the ranks, and would die of
	// what it says of that.
	said, err := os.OpenFile(filepath.Join(dir, "mpirun"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	defer said.Close()
	if m.library != "" {
		env = append(env, "LAZO_MPI="+m.library)
	}
	env = append(env, "LAZO_RUN="+dir)
	args := []string{"-np", fmt.Sprint(n)}
	if m.open {
		args = append(args, "--bind-to", "none") // else each rank has one core, and XLA's threads share it
		// More ranks than cores are the user's choice: versions 4 and 5 have it under other names.
		env = append(env, "OMPI_MCA_rmaps_base_oversubscribe=1", "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe")
		if n > runtime.NumCPU() {
			env = append(env, "OMPI_MCA_mpi_yield_when_idle=1") // who waits would keep the processor from those it waits for
		}
		if os.Geteuid() == 0 {
			args = append(args, "--allow-run-as-root")
		}
	}
	cmd := exec.Command(m.path, append(append(args, "sh", "-c", wrapper, "sh", dir), m.Command...)...)
	cmd.Dir, cmd.Env = m.Dir, env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = m.Stdin, said, said
	cmd.SysProcAttr = attributes(syscall.SIGTERM)
	cmd.WaitDelay = time.Second
	var pipes pipes
	defer pipes.close()
	for r := range n {
		if err := errors.Join(pipes.open(filepath.Join(dir, fmt.Sprintf("%d.1", r)), m.output(r, 1)),
			pipes.open(filepath.Join(dir, fmt.Sprintf("%d.2", r)), m.output(r, 2))); err != nil {
			return fmt.Errorf("launch: %w", err)
		}
	}
	// The launcher dies with the thread that started it, so that a killed `lazo run` leaves no ranks.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	hung := make(chan struct{})
	watched, unwatch := context.WithCancel(context.Background())
	defer unwatch()
	go func() {
		if outlives(watched, dir, n) {
			close(hung)
			signalAll(cmd.Process.Pid, syscall.SIGKILL)
		}
	}()
	select {
	case err = <-ended:
	case <-ctx.Done():
		for r := range n {
			if pid := noted(dir, r); pid > 0 {
				signalAll(pid, signalOf(ctx))
			}
		}
		select {
		case err = <-ended:
		case <-time.After(m.Grace):
			for r := range n {
				if pid := noted(dir, r); pid > 0 {
					signalAll(pid, syscall.SIGKILL)
				}
			}
			err = m.endHard(cmd, ended)
		}
	}
	pipes.drain()
	if err == nil {
		return m.allLeft(dir)
	}
	var last child.Tail
	_, reading := io.Copy(&last, io.NewSectionReader(said, 0, 1<<20))
	words := strings.TrimSpace(last.String())
	if words != "" && (m.Verbose || !pipes.complained) {
		fmt.Fprintln(m.Stderr, words)
	}
	err = exitError(err, words)
	select {
	case <-hung:
		code := failedBy(words)
		if code == 0 || m.Verbose {
			fmt.Fprintf(m.Stderr, "lazo run: %s did not end within %v of its last rank: it was killed\n", filepath.Base(m.path), stuck)
		}
		err = &ExitError{Code: cmp.Or(code, dist.ExitLost), Said: words}
	default:
	}
	if exit := (*ExitError)(nil); m.open && errors.As(err, &exit) && exit.Code == 1 && improper(words) {
		exit.Code = dist.ExitLost
	}
	if exit := (*ExitError)(nil); !m.open && errors.As(err, &exit) && endedBySignal(words, exit.Code) {
		exit.Code += 128
	}
	return errors.Join(err, reading)
}

// outlives reports whether mpirun still runs for a while after all of its n ranks have ended, which it would be killed
// for. It returns false when the context ends, as it does when mpirun has.
func outlives(ctx context.Context, dir string, n int) bool {
	const look = stuck / 20
	for since := time.Duration(0); since < stuck; since += look {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(look):
		}
		for r := range n {
			if pid := noted(dir, r); pid == 0 || runs(pid) {
				since = 0
				break
			}
		}
	}
	return true
}

var rankFailed = regexp.MustCompile(`Exit code:\s+(\d+)|on signal (\d+)`)

// failedBy returns the exit code of the first rank that failed by the words of mpirun, 0 if they have none.
func failedBy(words string) int {
	found := rankFailed.FindStringSubmatch(words)
	if found == nil {
		return 0
	}
	code, _ := strconv.Atoi(found[1])
	if signal, err := strconv.Atoi(found[2]); err == nil {
		code = 128 + signal
	}
	return code
}

// endedBySignal tells by the words of MPICH's mpirun whether its exit code is the number of the signal that ended a
// rank.
func endedBySignal(words string, code int) bool {
	return strings.Contains(words, fmt.Sprintf("(signal %d)", code))
}

// improper tells by the words of Open MPI's mpirun that a rank ended with exit code 0 in the midst of the job. It gives
// 1 itself then, as for a rank that ends with 1, of which it says another thing.
func improper(words string) bool {
	return strings.Contains(strings.Join(strings.Fields(words), " "), "exiting improperly")
}

// allLeft is an error where a rank joined the job and did not leave it: MPICH's mpiexec gives 0 if that rank did.
func (m *mpirun) allLeft(dir string) error {
	notes, err := filepath.Glob(filepath.Join(dir, "*.joined"))
	if err != nil || len(notes) == 0 {
		return err
	}
	var ranks []string
	for _, note := range notes {
		ranks = append(ranks, strings.TrimSuffix(filepath.Base(note), ".joined"))
	}
	fmt.Fprintf(m.Stderr, "lazo run: the job was lost: rank %s ended without Job.Close, and %s ended with exit code 0\n", strings.Join(ranks, ", "), filepath.Base(m.path))
	return &ExitError{Code: dist.ExitLost}
}

// endHard waits for mpirun, whose ranks were killed: it ends then, is asked to, or made to.
func (m *mpirun) endHard(cmd *exec.Cmd, ended <-chan error) error {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		select {
		case err := <-ended:
			return err
		case <-time.After(told):
			signalAll(cmd.Process.Pid, s)
		}
	}
	return <-ended
}

// noted is the process of a rank, 0 if it has not begun.
func noted(dir string, rank int) (pid int) {
	text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%d.pid", rank)))
	if err != nil {
		return 0
	}
	_, _ = fmt.Sscan(string(text), &pid) // half written: none
	return pid
}

// signalOf is what ended a context.
func signalOf(ctx context.Context) syscall.Signal {
	if by, ok := errors.AsType[*loop.SignalError](context.Cause(ctx)); ok {
		return by.Signal
	}
	return syscall.SIGTERM
}

func exitError(err error, said string) error {
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) {
		return fmt.Errorf("launch: %w", err)
	}
	code := exit.ExitCode()
	if signal := child.Signal(err); signal != 0 {
		code = 128 + int(signal)
	}
	return &ExitError{Code: code, Said: said}
}

// alone starts ranks as processes of their own.
type alone struct{ *Options }

func (a *alone) start(ctx context.Context, n int, env []string) error {
	// Rank 0 inherits the open listener: a port that is only chosen here can belong to another process a moment later.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("launch: a port for rank 0: %w", err)
	}
	coordinator := listener.Addr().String()
	port, err := listener.(*net.TCPListener).File()
	if err = errors.Join(err, listener.Close()); err != nil {
		return fmt.Errorf("launch: a port for rank 0: %w", err)
	}
	defer port.Close()
	type end struct {
		rank int
		err  error
	}
	ends := make(chan end, n)
	var running []*exec.Cmd
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	kill := func(s syscall.Signal) {
		for _, cmd := range running {
			signalAll(cmd.Process.Pid, s)
		}
	}
	for r := range n {
		cmd := exec.Command(a.Command[0], a.Command[1:]...)
		cmd.Dir = a.Dir
		cmd.Env = append(env[:len(env):len(env)], fmt.Sprintf("LAZO_RANK=%d", r), fmt.Sprintf("LAZO_SIZE=%d", n), "LAZO_COORDINATOR="+coordinator)
		cmd.Stdout, cmd.Stderr = a.output(r, 1), a.output(r, 2)
		if r == 0 {
			cmd.Stdin = a.Stdin
			cmd.ExtraFiles, cmd.Env = []*os.File{port}, append(cmd.Env, "LAZO_LISTENER=3")
		}
		cmd.SysProcAttr = attributes(syscall.SIGKILL)
		cmd.WaitDelay = time.Second
		if err := cmd.Start(); err != nil {
			kill(syscall.SIGKILL)
			return fmt.Errorf("launch: %w", err)
		}
		if r == 0 { // after it has ended, nothing may answer the others
			port.Close()
		}
		running = append(running, cmd)
		go func() {
			err := cmd.Wait()
			for _, w := range []io.Writer{cmd.Stdout, cmd.Stderr} {
				if l, ok := w.(*lines); ok {
					_ = l.end()
				}
			}
			ends <- end{r, err}
		}()
	}
	var failed error
	var over <-chan time.Time
	done := ctx.Done()
	for left := n; left > 0; {
		select {
		case e := <-ends:
			left--
			if e.err == nil {
				continue
			}
			err := exitError(e.err, "")
			if exit := (*ExitError)(nil); errors.As(err, &exit) && exit.Code >= dist.ExitLost && exit.Code <= dist.ExitFailed {
				over = time.After(told) // the job has ended, and who can has been told
			} else if failed == nil {
				over = time.After(a.Grace)
			}
			failed = cmp.Or(failed, err)
		case <-done:
			done = nil
			kill(signalOf(ctx))
			over = time.After(a.Grace)
		case <-over:
			kill(syscall.SIGKILL)
		}
	}
	for _, cmd := range running {
		for _, w := range []io.Writer{cmd.Stdout, cmd.Stderr} {
			if l, ok := w.(*lines); ok {
				_ = l.Close()
			}
		}
	}
	return failed
}
