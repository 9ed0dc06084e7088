package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/lazo-ml/lazo/internal/install"
	"github.com/lazo-ml/lazo/internal/probe"
	"github.com/lazo-ml/lazo/xla"
)

type installCommand struct {
	Plugin   string `arg:"" optional:"" default:"cpu" enum:"cpu,cpu106,cpu81,cuda,cuda12,cuda_compile,tpu,mpi,mpich" help:"What to install: cpu, cpu106 or cpu81 (the one with PJRT API 0.106 or 0.81), cuda (CUDA 13), cuda12, cuda_compile (of cuda what compiling for it needs, where there is no such device), tpu, or for jobs of several processes mpi (Open MPI) or mpich."`
	Check    bool   `help:"Install nothing; say whether the installed plugin is whole."`
	Prefix   string `placeholder:"DIR" help:"Folder to install in, in place of $LAZO_HOME or lazo's folder in the home directory. Programs find it by LAZO_HOME=DIR."`
	From     string `placeholder:"FILE" help:"Install from a wheel, a folder of wheels or a library on this machine, without network; a file has at most 8 GiB."`
	IndexURL string `placeholder:"URL" help:"Package index to download from; digests stay those of lazo's table."`
	SHA256   string `name:"sha256" placeholder:"HEX" help:"Digest of --from, if lazo's table does not list the file."`
	Force    bool   `help:"Install again even if an intact plugin is there."`
}

func (c installCommand) Run(s session) error {
	if c.Check {
		return check(s.ctx, s.stdout, c.Plugin, c.Prefix)
	}
	done, err := install.Install(s.ctx, c.Plugin, install.Options{
		Root: c.Prefix, From: c.From, IndexURL: c.IndexURL, SHA256: c.SHA256, Force: c.Force,
		Probe: c.probe(s.stderr), Progress: progress(s.stderr),
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(s.stdout, "%s %s: %s\n", done.Kind, plain(done.Version), plain(done.Path))
	return nil
}

// probe accepts a missing device, to build images for other machines.
func (c installCommand) probe(w io.Writer) func(context.Context, string) error {
	if isMPI(c.Plugin) {
		return tryMPI
	}
	return func(ctx context.Context, path string) error {
		err := probe.Check(ctx, path)
		failed := (*probe.Error)(nil)
		loads := errors.As(err, &failed) && failed.Stage == probe.StageClient &&
			(errors.Is(err, probe.ErrNoDevice) || errors.Is(err, probe.ErrTimeout))
		if loads && !strings.HasPrefix(c.Plugin, xla.CPU) {
			line(w, "warning", "the plugin loads, but does not work on this machine: %v", failed.Cause)
			return nil
		}
		return err
	}
}

func check(ctx context.Context, w io.Writer, kind, root string) error {
	found, err := install.Check(ctx, kind, root)
	if errors.Is(err, install.ErrNotInstalled) {
		return fmt.Errorf("%w: lazo install %s", err, kind)
	}
	if err != nil {
		return err
	}
	if launcher := found.Launcher(); launcher != "" {
		line(w, "mpi", "%s %s: %s, launcher %s", found.Kind, found.Version, found.Path, launcher)
	} else {
		line(w, "plugin", "%s %s, PJRT API %s: %s", found.Kind, found.Version, found.API, found.Path)
	}
	line(w, "digest", "ok, sha256 %s", found.SHA256)
	if found.Successor != "" {
		line(w, "note", "lazo install %s brings version %s now; until then version %s is used", kind, found.Successor, plain(found.Version))
	}
	return nil
}

func progress(w io.Writer) func(install.Event) {
	moving := onTerminal(w)
	var last install.Event
	return func(e install.Event) {
		if e.Stage != last.Stage || e.File != last.File {
			size := ""
			if e.Stage == install.Wait {
				size = " is held by another installation"
			} else if e.Total > 0 {
				size = fmt.Sprintf(", %.1f MB", float64(e.Total)/1e6)
			}
			line(w, string(e.Stage), "%s%s", e.File, size)
		} else if percent := share(e); moving && percent != share(last) {
			fmt.Fprintf(w, "\r%8d%%\r", percent)
		}
		last = e
	}
}

func onTerminal(of any) bool {
	file, isFile := of.(*os.File)
	return isFile && term.IsTerminal(int(file.Fd()))
}

func share(e install.Event) int64 {
	if e.Total <= 0 {
		return 0
	}
	return e.Done * 100 / e.Total
}
