// Command release prepares a version of lazo: it checks that everybody can use the modules of the checkout as that
// version, and packs the command. It publishes nothing. See CONTRIBUTING.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("release: ")
	r := release{log: os.Stdout, platforms: platforms}
	flag.StringVar(&r.root, "root", "../..", "the checkout")
	flag.StringVar(&r.version, "version", "", "the version, such as v0.1.0")
	flag.StringVar(&r.out, "out", "../../.release", "the `folder` of the archives, which is replaced")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := r.run(ctx)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

type release struct {
	root, version, out string
	platforms          []string
	log                io.Writer

	modules []module // of the checkout, its root first
	work    string   // a temporary folder
}

// dir is relative to the root.
type module struct {
	dir string
	mod *modfile.File
}

func (m module) path() string { return m.mod.Module.Mod.Path }

func (r *release) run(ctx context.Context) (err error) {
	if semver.Canonical(r.version) != r.version || semver.Major(r.version) > "v1" {
		return fmt.Errorf("version %q: expected vMAJOR.MINOR.PATCH below v2, such as v0.1.0", r.version)
	}
	for _, path := range []*string{&r.root, &r.out} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if r.work, err = os.MkdirTemp("", "lazo-release-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	for _, step := range []func(context.Context) error{r.described, r.find, r.require, r.compare, r.serve, r.use, r.pack} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintf(r.log, "%s is ready. Commit the changed files, then tag and push:\n", r.version)
	for _, m := range r.modules {
		fmt.Fprintf(r.log, "  git tag %s\n", strings.TrimPrefix(filepath.ToSlash(filepath.Join(m.dir, r.version)), "./"))
	}
	return nil
}

func (r *release) described(ctx context.Context) error {
	text, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	if !regexp.MustCompile(`(?m)^## ` + regexp.QuoteMeta(r.version) + `\b`).Match(text) {
		return fmt.Errorf("CHANGELOG.md has no section %q: expected one, named so instead of \"## Unreleased\"", "## "+r.version)
	}
	tag, err := r.git(ctx, "tag", "--list", r.version)
	if err == nil && tag != "" {
		err = fmt.Errorf("the tag %s exists: expected a new version", r.version)
	}
	return err
}

// Tools and examples are not imported.
func (r *release) find(ctx context.Context) error {
	files, err := r.git(ctx, "ls-files", "go.mod", "*/go.mod")
	if err != nil {
		return err
	}
	for _, file := range strings.Fields(files) {
		if strings.HasPrefix(file, "internal/") || strings.HasPrefix(file, "examples/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(r.root, file))
		if err != nil {
			return err
		}
		mod, err := modfile.Parse(file, text, nil)
		if err != nil {
			return err
		}
		m := module{filepath.Dir(file), mod}
		if m.dir == "." {
			r.modules = append([]module{m}, r.modules...)
		} else {
			r.modules = append(r.modules, m)
		}
	}
	if len(r.modules) == 0 || r.modules[0].dir != "." {
		return fmt.Errorf("%s: expected a checkout with a go.mod", r.root)
	}
	return nil
}

// require makes the modules require this version of each other. Their replace directives stay: they connect the modules
// in a checkout, and apply nowhere else.
func (r *release) require(context.Context) error {
	for _, m := range r.modules {
		changed := false
		for _, other := range r.modules {
			for _, q := range m.mod.Require {
				if q.Mod.Path == other.path() && q.Mod.Version != r.version {
					if err := m.mod.AddRequire(other.path(), r.version); err != nil {
						return err
					}
					changed = true
				}
			}
		}
		if !changed {
			continue
		}
		text, err := m.mod.Format()
		if err != nil {
			return err
		}
		file := filepath.Join(m.dir, "go.mod")
		if err := os.WriteFile(filepath.Join(r.root, file), text, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(r.log, "%s requires %s\n", file, r.version)
	}
	return nil
}

func (r *release) git(ctx context.Context, args ...string) (string, error) {
	return output(ctx, r.root, nil, "git", args...)
}

func output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var faults strings.Builder
	cmd.Stderr = &faults
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out, faults.String())
	}
	return strings.TrimSpace(string(out)), nil
}
