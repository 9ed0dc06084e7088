package dist

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/lazo-ml/lazo/internal/install"
	"github.com/lazo-ml/lazo/internal/joined"
	"github.com/lazo-ml/lazo/internal/mpi"
)

// Option is a setting of [Join].
type Option func(*options)

type options struct {
	deadline  time.Duration
	start     time.Duration
	onFailure func(*Failure)
}

const (
	defaultDeadline = time.Minute
	defaultStart    = 5 * time.Minute
)

// Deadline sets how long ranks wait for a late or silent rank before the job ends, by default a minute. $LAZO_DEADLINE
// overrides it. Rank 0's value counts.
func Deadline(d time.Duration) Option { return func(o *options) { o.deadline = d } }

// StartWithin sets how long [Join] waits for all ranks, by default 5 minutes.
func StartWithin(d time.Duration) Option { return func(o *options) { o.start = d } }

// OnFailure passes a job's failure to f in each process, instead of standard error. The process exits when f returns,
// or after 2 s.
func OnFailure(f func(*Failure)) Option { return func(o *options) { o.onFailure = f } }

// Join makes this process a rank of its job, by the launcher's variables, and waits for all other ranks. Close the job
// at the program's end.
//
// If the launcher has prepared MPI (mpirun, srun --mpi), Join initializes a library: $LAZO_MPI, or the first that
// fits of the launcher's folder, $LD_LIBRARY_PATH, the folders next to mpirun in $PATH and the system's, or lazo's
// installed one. Errors: missing variables, another library than the launcher's, ranks that do not join or run
// different programs. ctx applies to Join only.
func Join(ctx context.Context, opts ...Option) (*Job, error) {
	o := options{deadline: defaultDeadline, start: defaultStart}
	for _, option := range opts {
		if option != nil {
			option(&o)
		}
	}
	if o.deadline <= 0 || o.start <= 0 {
		return nil, fmt.Errorf("dist: a deadline of %v and a start within %v: expected times above 0", o.deadline, o.start)
	}
	p, err := find(os.Getenv)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("dist: the name of this host: %w", err)
	}
	j := &Job{
		rank: p.rank, size: p.size, launcher: p.launcher, name: p.job, attempt: p.attempt, over: make(chan struct{}), deadline: cmp.Or(p.deadline, o.deadline), onFailure: o.onFailure,
		activity: activity{start: time.Now()},
		peers:    []peer{{Host: host, PID: os.Getpid(), LocalSize: 1}},
	}
	if j.size == 1 {
		return j, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.start, fmt.Errorf("not all ranks came within %v", o.start))
	defer cancel()
	me := hello{
		Job: p.job, Attempt: p.attempt, Rank: p.rank, Size: p.size, Host: host, PID: os.Getpid(),
		LocalRank: p.localRank, LocalSize: p.localSize, Program: program(),
	}
	addresses := []string{p.coordinator}
	listen := listenAt(p.coordinator)
	if p.byMPI {
		if err := j.open(ctx, p); err != nil {
			return nil, err
		}
		me.LocalRank, me.LocalSize = j.world.LocalRank(), j.world.LocalSize()
		listen = ":0"
		if j.world.LocalSize() == j.size {
			listen = "127.0.0.1:0"
		}
	}
	if j.rank == 0 {
		err = j.lead(ctx, listen, me, p.secret)
	} else {
		err = j.follow(ctx, addresses, me, p.secret)
	}
	if err != nil {
		return nil, err
	}
	if dir := os.Getenv(variableRun); dir != "" {
		path := filepath.Join(dir, fmt.Sprintf("%d.joined", j.rank))
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return nil, fmt.Errorf("dist: the folder of lazo run, $%s: %w", variableRun, err)
		}
		j.note = path
	}
	joined.Enter(j)
	return j, nil
}

type meeting struct {
	Addresses []string
	Secret    string
	Failed    string
}

const meetingBytes = 2048

func (j *Job) lead(ctx context.Context, listen string, me hello, secret string) error {
	if j.world != nil {
		secret = rand.Text() // sent by MPI
	}
	h, err := newHub(j, listen, me, secret)
	if j.world != nil {
		m := meeting{Secret: secret}
		if err != nil {
			m.Failed = err.Error()
		} else {
			m.Addresses = reachable(h.listener.Addr())
		}
		if err := m.share(j.world); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	j.hub = h
	if err := h.gather(ctx); err != nil {
		return err
	}
	h.watch()
	return nil
}

func (j *Job) follow(ctx context.Context, addresses []string, me hello, secret string) error {
	if j.world != nil {
		var m meeting
		if err := m.share(j.world); err != nil {
			return err
		}
		if m.Failed != "" {
			return fmt.Errorf("dist: rank 0 could not begin: %s", m.Failed)
		}
		secret, addresses = m.Secret, m.Addresses
	}
	s, err := connect(ctx, j, addresses, me, secret)
	if err != nil {
		return err
	}
	j.spoke = s
	s.watch()
	return nil
}

func (m *meeting) share(w *mpi.World) error {
	data := make([]byte, meetingBytes)
	if w.Rank() == 0 {
		text, err := json.Marshal(m)
		if err != nil || len(text) > len(data) {
			m.Addresses, m.Failed = nil, "too many addresses"
			text, _ = json.Marshal(meeting{Failed: m.Failed})
		}
		copy(data, text)
	}
	if err := w.Broadcast(0, data); err != nil {
		return fmt.Errorf("dist: the address of rank 0, by MPI: %w", err)
	}
	if err := json.Unmarshal(bytes.TrimRight(data, "\x00"), m); err != nil {
		return fmt.Errorf("dist: the address of rank 0, by MPI: %w", err)
	}
	return nil
}

// listenAt keeps a job of one host on loopback. Otherwise rank 0 listens on all interfaces: its name may not be its
// address, as of a Kubernetes service.
func listenAt(coordinator string) string {
	host, port, err := net.SplitHostPort(coordinator)
	if err != nil {
		return coordinator // checked by find
	}
	ip := net.ParseIP(host)
	own, _ := net.InterfaceAddrs() // without them, on all
	if host == "localhost" || ip.IsLoopback() || slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip)
	}) {
		return coordinator
	}
	return ":" + port
}

func reachable(a net.Addr) (list []string) {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return []string{a.String()}
	}
	if ip := net.ParseIP(host); ip != nil && !ip.IsUnspecified() {
		return []string{a.String()}
	}
	own, _ := net.InterfaceAddrs() // without them, its name alone
	for _, address := range own {
		if n, ok := address.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() && len(list) < 16 {
			list = append(list, net.JoinHostPort(n.IP.String(), port))
		}
	}
	if name, err := os.Hostname(); err == nil {
		list = append(list, net.JoinHostPort(name, port))
	}
	return list
}

func (j *Job) open(ctx context.Context, p place) error {
	library, err := openLibrary(p)
	if err != nil {
		return err
	}
	type initialized struct {
		world *mpi.World
		err   error
	}
	done := make(chan initialized, 1)
	go func() {
		w, err := library.Init()
		done <- initialized{w, err}
	}()
	defer j.announce(func() string {
		return fmt.Sprintf("in MPI_Init of %s (%s) for all ranks to be there", library.Path(), library.Version())
	})()
	var w *mpi.World
	select {
	case <-ctx.Done():
		return fmt.Errorf("dist: MPI_Init of %s (%s) does not return, other ranks may not have been started: %w", library.Path(), library.Version(), context.Cause(ctx))
	case i := <-done:
		if i.err != nil {
			return fmt.Errorf("dist: %w", i.err)
		}
		w = i.world
	}
	if w.Rank() != p.rank || w.Size() != p.size {
		return fmt.Errorf("dist: %s (%s) says rank %d of %d, and %s rank %d of %d: %w: each process would run as a separate job. Set $%s to the library of the launcher",
			library.Path(), library.Version(), w.Rank(), w.Size(), p.launcher, p.rank, p.size, mpi.ErrLauncher, variableMPI)
	}
	j.world = w
	return nil
}

// openLibrary opens only one: a second would find symbols of the first.
func openLibrary(p place) (*mpi.Library, error) {
	l, err := mpi.Open(p.library)
	if errors.Is(err, mpi.ErrNotFound) && p.library == "" {
		installed, missing := install.Find(p.kind, "")
		switch {
		case missing == nil:
			l, err = mpi.Open(installed.Path)
		case !errors.Is(missing, install.ErrNotInstalled):
			err = missing
		}
	}
	if err != nil {
		return nil, fmt.Errorf("dist: %s started this process: %w", p.launcher, err)
	}
	return l, nil
}

// program: the build information lacks uncommitted changes.
func program() []string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	list := []string{info.Path, info.GoVersion}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		list = append(list, m.Path+" "+m.Version+" "+m.Sum)
	}
	for _, s := range info.Settings {
		if s.Key == "GOOS" || s.Key == "GOARCH" || s.Key == "-tags" || s.Key == "-race" || s.Key == "vcs.revision" || s.Key == "vcs.modified" {
			list = append(list, s.Key+"="+s.Value)
		}
	}
	return append(list, "executable "+digest())
}

func digest() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}
