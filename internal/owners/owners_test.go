//go:build unix

//
//lazo:norace
package owners

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// stranger is an unused user ID, and other is the user that root becomes.
const (
	stranger = 65534
	other    = 65533
)

// A child process reports whether it trusts each of the given paths.
const pathsVariable = "LAZO_OWNERS_TEST_PATHS"

func TestMain(m *testing.M) {
	if paths := os.Getenv(pathsVariable); paths != "" {
		for _, path := range strings.Split(paths, ":") {
			_, err := Resolve(path)
			os.Stdout.WriteString(verdict(err) + "\n")
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func verdict(err error) string {
	switch {
	case err == nil:
		return "fine"
	case errors.Is(err, ErrUnsafe):
		return "unsafe"
	}
	return err.Error()
}

// place is a folder in which a test lays things out. Only root can give them to others; for any other user, all that is
// his is looked at as by the user after him.
type place struct {
	t    *testing.T
	dir  string
	user user
}

func newPlace(t *testing.T) *place {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	p := &place{t, dir, now()}
	p.user.private = func(string, int) bool { return false }
	return p
}

func (p *place) in(name string) string { return filepath.Join(p.dir, name) }

func (p *place) file(name string) string {
	p.t.Helper()
	require.NoError(p.t, os.MkdirAll(filepath.Dir(p.in(name)), 0o700))
	require.NoError(p.t, os.WriteFile(p.in(name), []byte("code"), 0o600))
	return p.in(name)
}

func (p *place) link(name, target string) string {
	p.t.Helper()
	require.NoError(p.t, os.MkdirAll(filepath.Dir(p.in(name)), 0o700))
	require.NoError(p.t, os.Symlink(target, p.in(name)))
	return p.in(name)
}

func (p *place) mode(name string, mode fs.FileMode) { require.NoError(p.t, os.Chmod(p.in(name), mode)) }

func (p *place) give(name string) {
	if os.Geteuid() == 0 {
		require.NoError(p.t, os.Lchown(p.in(name), stranger, stranger))
	} else {
		p.user.uid++
	}
}

// cases make files, and have the path to check and whether it is refused.
var cases = []struct {
	name   string
	unsafe bool
	lay    func(p *place) string
}{
	{"own", false, func(p *place) string { return p.file("lib/a.so") }},
	{"root's", false, func(*place) string { return "/etc/passwd" }},
	{"own, in a sticky folder", false, func(p *place) string { a := p.file("lib/a.so"); p.mode("lib", 0o777|fs.ModeSticky); return a }},
	{"own link to own", false, func(p *place) string { return p.link("links/a", p.file("lib/a.so")) }},
	{"own link through ..", false, func(p *place) string { p.file("lib/a.so"); return p.link("links/a", "../links/./../lib/a.so") }},

	{"a stranger's file", true, func(p *place) string { a := p.file("lib/a.so"); p.give("lib/a.so"); return a }},
	{"a stranger's file in a sticky folder", true, func(p *place) string {
		a := p.file("lib/a.so")
		p.mode("lib", 0o777|fs.ModeSticky)
		p.give("lib/a.so")
		return a
	}},
	{"a stranger's folder", true, func(p *place) string { a := p.file("lib/a.so"); p.give("lib"); return a }},
	{"a stranger's folder far above", true, func(p *place) string { a := p.file("1/2/3/4/a.so"); p.give("1"); return a }},
	{"a stranger's sticky folder", true, func(p *place) string {
		a := p.file("lib/a.so")
		p.mode("lib", 0o777|fs.ModeSticky)
		p.give("lib")
		return a
	}},
	{"a stranger's link to root's", true, func(p *place) string { a := p.link("links/a", "/etc/passwd"); p.give("links/a"); return a }},
	{"a stranger's link in a sticky folder", true, func(p *place) string {
		a := p.link("links/a", p.file("lib/a.so"))
		p.mode("links", 0o777|fs.ModeSticky)
		p.give("links/a")
		return a
	}},
	{"a link into a stranger's folder", true, func(p *place) string { a := p.link("links/a", p.file("lib/a.so")); p.give("lib"); return a }},
	{"a chain of links, one a stranger's", true, func(p *place) string {
		p.file("lib/a.so")
		p.link("two/a", "../lib/a.so")
		a := p.link("one/a", "../two/a")
		p.give("two/a")
		return a
	}},
	{"a folder that is a stranger's link", true, func(p *place) string {
		p.file("lib/a.so")
		a := p.link("way", "lib") + "/a.so"
		p.give("way")
		return a
	}},

	{"everybody's file", true, func(p *place) string { a := p.file("lib/a.so"); p.mode("lib/a.so", 0o606); return a }},
	{"everybody's folder", true, func(p *place) string { a := p.file("lib/a.so"); p.mode("lib", 0o777); return a }},
	{"everybody's folder far above", true, func(p *place) string { a := p.file("1/2/3/4/a.so"); p.mode("1", 0o777); return a }},
	{"a group's file", true, func(p *place) string { a := p.file("lib/a.so"); p.mode("lib/a.so", 0o660); return a }},
	{"a group's folder", true, func(p *place) string { a := p.file("lib/a.so"); p.mode("lib", 0o770); return a }},
	{"a link in everybody's folder", true, func(p *place) string { a := p.link("links/a", p.file("lib/a.so")); p.mode("links", 0o777); return a }},
	{"a link through everybody's folder", true, func(p *place) string {
		a := p.link("links/a", "../open/../lib/a.so")
		p.file("lib/a.so")
		p.file("open/b")
		p.mode("open", 0o777)
		return a
	}},
}

func TestF48_ownersAndWriters(t *testing.T) {
	refused := 0
	for _, row := range cases {
		t.Run(row.name, func(t *testing.T) {
			p := newPlace(t)
			path := row.lay(p)
			real, err := p.user.resolve(path)
			if !row.unsafe {
				require.NoError(t, err)
				want, err := filepath.EvalSymlinks(path)
				require.NoError(t, err)
				require.Equal(t, want, real)
				return
			}
			require.ErrorIs(t, err, ErrUnsafe)
			require.Regexp(t, `chown|chmod [go]-w /`, err.Error(), "what to do")
			refused++
		})
	}
	t.Logf("F48: %d layouts, %d refused, as user %d", len(cases), refused, os.Geteuid())
}

// The same as a process of another user sees it: its own files and root's are fine, those of the one before are not.
func TestF48_asAnotherUser(t *testing.T) {
	p := newPlace(t)
	for _, dir := range []string{filepath.Dir(p.dir), p.dir} { // to be looked at by others
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	paths := []string{"/etc/passwd", p.file("own"), p.file("theirs"), p.dir}
	command := exec.Command("/proc/self/exe") // the program itself, whose folder another user could not reach
	command.Env = append(os.Environ(), pathsVariable+"="+strings.Join(paths, ":"))
	want := "fine\nfine\nfine\nfine\n"
	if os.Geteuid() == 0 {
		require.NoError(t, os.Lchown(p.in("own"), other, other))
		require.NoError(t, os.Lchown(p.in("theirs"), stranger, stranger))
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: other, Gid: other}}
		want = "fine\nfine\nunsafe\nfine\n"
	}
	said, err := command.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Equal(t, want, string(said))
	t.Logf("F48: as user %d, started by %d", other, os.Geteuid())
}

func TestResolve_otherErrors(t *testing.T) {
	p := newPlace(t)
	_, err := p.user.resolve(p.in("none"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = p.user.resolve(p.link("a", "nowhere"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = p.user.resolve(p.link("b", "b"))
	require.ErrorIs(t, err, syscall.ELOOP)
	t.Chdir(p.dir)
	p.file("lib/a.so")
	real, err := p.user.resolve("lib/a.so")
	require.NoError(t, err)
	require.Equal(t, p.in("lib/a.so"), real)
}

// A folder of lazo's own must not be writable by others in any way.
func TestFolder(t *testing.T) {
	p := newPlace(t)
	p.file("lib/a.so")
	require.NoError(t, Folder(p.in("lib")))
	require.ErrorIs(t, Folder(p.in("lib/a.so")), syscall.ENOTDIR)
	p.mode("lib", 0o777|fs.ModeSticky)
	require.ErrorIs(t, Folder(p.in("lib")), ErrUnsafe)
}

// ReadFile reads only regular files of the user: a pipe without a writer does not block it. S56: it reads no more than
// its limit.
func TestR50_readFileNeverWaits(t *testing.T) {
	for _, row := range []struct {
		name, want string
		lay        func(p *place) string
	}{
		{"a file", "", func(p *place) string { return p.file("a") }},
		{"a large file", "has 1048577 bytes, expected at most 1048576", func(p *place) string { a := p.file("a"); require.NoError(t, os.Truncate(a, 1<<20+1)); return a }},
		{"a pipe", "not a regular file", func(p *place) string { require.NoError(t, unix.Mkfifo(p.in("a"), 0o600)); return p.in("a") }},
		{"a folder", "not a regular file", func(p *place) string { p.file("lib/a"); return p.in("lib") }},
		{"a link", "too many levels of symbolic links", func(p *place) string { return p.link("b", p.file("a")) }},
		{"everybody's", "every user may write to it", func(p *place) string { p.file("a"); p.mode("a", 0o606); return p.in("a") }},
		{"in everybody's folder", "every user may write to it", func(p *place) string { a := p.file("lib/a"); p.mode("lib", 0o777); return a }},
	} {
		t.Run(row.name, func(t *testing.T) {
			path, start := row.lay(newPlace(t)), time.Now()
			data, err := ReadFile(path, 1<<20)
			require.Less(t, time.Since(start), 10*time.Second)
			if row.want != "" {
				require.ErrorContains(t, err, row.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, "code", string(data))
		})
	}
}
