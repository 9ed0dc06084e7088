package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// CHANGELOG.md or docs/renamed.tsv must name each incompatible change since the newest version.
func (r *release) compare(ctx context.Context) error {
	tags, err := r.git(ctx, "tag", "--list", "v*", "--sort=-version:refname", "--merged")
	if err != nil {
		return err
	}
	if tags == "" {
		fmt.Fprintln(r.log, "there is no version before this one: its names are compared with none")
		return nil
	}
	before, _, _ := strings.Cut(tags, "\n")
	old := filepath.Join(r.work, "before")
	if _, err := r.git(ctx, "worktree", "add", "--detach", old, before); err != nil {
		return err
	}
	defer r.git(context.WithoutCancel(ctx), "worktree", "remove", "--force", old)
	words, err := r.words()
	if err != nil {
		return err
	}
	var unnamed []string
	for _, m := range r.modules {
		if _, err := os.Stat(filepath.Join(old, m.dir, "go.mod")); err != nil {
			continue // a new module
		}
		lines, err := r.incompatible(ctx, old, m)
		if err != nil {
			return err
		}
		for _, line := range lines {
			if !words[nameIn(line)] {
				unnamed = append(unnamed, m.path()+": "+line)
			}
		}
	}
	if len(unnamed) > 0 {
		return fmt.Errorf("incompatible changes since %s that neither CHANGELOG.md nor docs/renamed.tsv names:\n  %s", before, strings.Join(unnamed, "\n  "))
	}
	fmt.Fprintf(r.log, "each incompatible change since %s is documented\n", before)
	return nil
}

func (r *release) incompatible(ctx context.Context, old string, m module) (lines []string, err error) {
	tools, err := output(ctx, "", nil, "go", "env", "GOMOD") // this program's module
	if err != nil {
		return nil, err
	}
	diff := []string{"tool", "-modfile=" + tools, "apidiff", "-m"}
	saved := filepath.Join(r.work, "before.api")
	if _, err := output(ctx, filepath.Join(old, m.dir), nil, "go", append(diff, "-w", saved, m.path())...); err != nil {
		return nil, err
	}
	found, err := output(ctx, filepath.Join(r.root, m.dir), nil, "go", append(diff, "-incompatible", saved, m.path())...)
	for line := range strings.Lines(found) {
		if change, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok {
			lines = append(lines, change)
		}
	}
	return lines, err
}

// The last identifier of the name in a line of apidiff, like "./loop.Logs.Suffix: removed", of a removed package its
// last element.
func nameIn(line string) string {
	name, _, _ := strings.Cut(line, ": ")
	return name[strings.LastIndexAny(name, "./")+1:]
}

func (r *release) words() (map[string]bool, error) {
	words := map[string]bool{}
	for _, file := range []string{"CHANGELOG.md", filepath.Join("docs", "renamed.tsv")} {
		text, err := os.ReadFile(filepath.Join(r.root, file))
		if err != nil {
			return nil, err
		}
		for _, word := range regexp.MustCompile(`\w+`).FindAllString(string(text), -1) {
			words[word] = true
		}
	}
	return words, nil
}
