package install

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

const library = "xla_plugins/toy/toy.so"

func TestMain(m *testing.M) {
	if order := os.Getenv(orderVariable); order != "" {
		os.Exit(obey(order))
	}
	goleak.VerifyTestMain(m)
}

func sum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}

// noise returns incompressible bytes.
func noise(seed uint64, n int) []byte {
	bytes := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(bytes)
	return bytes
}

// pack makes a wheel of a library and the other files of a real one.
func pack(t testing.TB, lib []byte) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := zip.NewWriter(&buffer)
	for name, data := range map[string][]byte{
		library: lib, "xla_plugins/toy/include/pjrt_c_api.h": []byte("#define PJRT_API_MINOR 1\n"),
		"xla_plugins/toy/__init__.py": []byte("import os\n"), "toy-1.dist-info/RECORD": []byte("record"),
	} {
		f, err := w.Create(name)
		require.NoError(t, err)
		_, err = f.Write(data)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return buffer.Bytes()
}

// toy is a row of a table, with its wheel.
type toy struct {
	Wheel
	lib, wheel []byte
}

func newToy(t testing.TB, version string, lib []byte) toy {
	t.Helper()
	wheel := pack(t, lib)
	return toy{lib: lib, wheel: wheel, Wheel: Wheel{
		Kind: "toy", Platform: platform(), Package: "toy-pjrt", Version: version, File: "toy-" + version + "-py3-none-any.whl",
		Size: int64(len(wheel)), SHA256: sum(wheel), Members: []string{library, "xla_plugins/toy/include/*.h"},
		Library: library, LibrarySHA256: sum(lib), API: "0.1", Licence: "none",
	}}
}

// index is a package index on a local TLS server. It serves its wheels, or answer's handler.
type index struct {
	*httptest.Server
	downloads atomic.Int64
	other     atomic.Pointer[http.HandlerFunc]
}

// answer replaces what is served for a wheel; nil restores the wheel.
func (x *index) answer(h http.HandlerFunc) {
	if h == nil {
		x.other.Store(nil)
		return
	}
	x.other.Store(&h)
}

func serve(t testing.TB, wheels ...toy) *index {
	t.Helper()
	x := &index{}
	x.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/simple/toy-pjrt/" {
			for _, toy := range wheels {
				fmt.Fprintf(w, "<a class=x href=\"../../files/%s?a=1&amp;b=2#sha256=%s\">%s</a>\n", toy.File, toy.SHA256, toy.File)
			}
			return
		}
		x.downloads.Add(1)
		if other := x.other.Load(); other != nil {
			(*other)(w, r)
			return
		}
		for _, toy := range wheels {
			if path.Base(r.URL.Path) == toy.File && r.URL.Query().Get("b") == "2" {
				w.Write(toy.wheel)
				return
			}
		}
		http.NotFound(w, r)
	}))
	x.Config.ErrorLog = log.New(io.Discard, "", 0)
	x.StartTLS()
	t.Cleanup(x.Close)
	t.Cleanup(x.Client().CloseIdleConnections)
	return x
}

func (x *index) options(root string, table ...toy) Options {
	o := Options{Root: root, IndexURL: x.URL + "/simple", HTTP: x.Client()}
	for _, toy := range table {
		o.table = append(o.table, toy.Wheel)
	}
	return o
}

// tidy fails if the folder of the plugin has files that do not belong to an installed plugin, or to none.
func tidy(t testing.TB, root string, installed bool) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, "toy"))
	if errors.Is(err, os.ErrNotExist) && !installed {
		return
	}
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, dirPrefix) {
			name = dirPrefix
		}
		names = append(names, name)
	}
	if installed {
		require.ElementsMatch(t, []string{"lock", dirPrefix, receiptName}, names)
	} else {
		require.Subset(t, []string{"lock"}, names)
	}
}

// A child process installs according to an order in its environment.
const orderVariable = "LAZO_INSTALL_TEST_ORDER"

type order struct {
	Root, IndexURL, Certificate string
	Table                       []Wheel
	Archives                    []string // extracted instead of an installation
	FileLimit                   uint64   // bytes, 0: none
}

// child makes the command; its stdout has a line for each event.
func (x *index) child(ctx context.Context, t testing.TB, o order) *exec.Cmd {
	t.Helper()
	if x != nil {
		o.IndexURL = x.URL + "/simple"
		o.Certificate = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: x.Certificate().Raw}))
	}
	text, err := json.Marshal(o)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	command := exec.CommandContext(ctx, self)
	command.Env = append(os.Environ(), orderVariable+"="+string(text))
	return command
}

func obey(text string) int {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Println(err)
		return 2
	}
	fmt.Println("ready")
	if o.Archives != nil {
		return obeyExtract(o.Archives, o.Root)
	}
	if o.FileLimit > 0 {
		signal.Ignore(syscall.SIGXFSZ)
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: o.FileLimit, Max: o.FileLimit}); err != nil {
			fmt.Println(err)
			return 2
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(o.Certificate))
	_, err := Install(context.Background(), "toy", Options{
		Root: o.Root, IndexURL: o.IndexURL, table: o.Table,
		HTTP:     &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}},
		Progress: func(e Event) { fmt.Println(e.Stage, e.Done) },
		Probe:    func(context.Context, string) error { return nil },
	})
	switch {
	case errors.Is(err, syscall.EFBIG):
		fmt.Println(err)
		return 3
	case err != nil:
		fmt.Println(err)
		return 1
	}
	return 0
}
