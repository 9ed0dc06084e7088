// Command site writes the pages of the website, of which Hugo makes the site: the documents, one page for each package
// and one for each example. `make site` runs it in the repository's root:
//
//	go run ./docs/site -gomarkdoc PATH -content DIR
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	module = "github.com/lazo-ml/lazo"
	source = "https://" + module + "/"
)

func main() {
	gomarkdoc := flag.String("gomarkdoc", "gomarkdoc", "the `program` that renders package documentation as Markdown")
	content := flag.String("content", "", "the `folder` for the pages")
	flag.Parse()
	if *content == "" {
		fmt.Fprintln(os.Stderr, "site: -content is missing: give the folder for the pages")
		os.Exit(2)
	}
	if err := write(context.Background(), *gomarkdoc, *content); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

type site struct {
	pages   map[string]string // file or folder of the repository → address of its page
	content string
}

func write(ctx context.Context, gomarkdoc, content string) error {
	documents, err := documentsOf(".")
	if err != nil {
		return err
	}
	packages, err := packagesOf(ctx)
	if err != nil {
		return err
	}
	s := &site{pages: map[string]string{"examples": "/examples/"}, content: content}
	for _, d := range documents {
		s.pages[d] = addressOf(d)
	}
	for _, p := range packages {
		if name, ok := strings.CutPrefix(p, "examples/"); ok {
			s.pages[p] = "/examples/" + name + "/"
		} else {
			s.pages[p] = "/api/" + p + "/"
		}
	}
	errs := []error{
		s.section("examples", "Examples", 3), s.section("api", "Packages", 4), s.section("from", "Coming from", 2),
		s.section("docs", "Reference", 5),
	}
	for _, d := range documents {
		errs = append(errs, s.document(d))
	}
	for _, p := range packages {
		if strings.HasPrefix(p, "examples/") {
			errs = append(errs, s.example(p))
		} else {
			errs = append(errs, s.api(ctx, gomarkdoc, p))
		}
	}
	return errors.Join(errs...)
}

func documentsOf(root string) (all []string, err error) {
	for _, dir := range []string{".", "docs"} {
		err = errors.Join(err, fs.WalkDir(os.DirFS(root), dir, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && dir == "." && name != ".":
				return fs.SkipDir
			case !entry.IsDir() && path.Ext(name) == ".md":
				all = append(all, name)
			}
			return nil
		}))
	}
	return all, err
}

func packagesOf(ctx context.Context) (all []string, err error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.ImportPath}} {{len .GoFiles}}", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		name, files, _ := strings.Cut(strings.TrimSpace(line), " ")
		name = strings.TrimPrefix(name, module+"/")
		parts := strings.Split(name, "/")
		if files == "0" || slices.Contains(parts, "internal") || parts[0] == "docs" ||
			slices.Contains([]string{"storetest", "strategytest"}, parts[len(parts)-1]) {
			continue
		}
		all = append(all, name)
	}
	return all, nil
}

func addressOf(document string) string {
	dir, name := path.Split(strings.ToLower(strings.TrimSuffix(document, ".md")))
	switch {
	case document == "README.md":
		return "/"
	case dir == "docs/" && strings.HasPrefix(name, "from-"):
		return "/from/" + strings.TrimPrefix(name, "from-") + "/"
	case dir == "", dir == "docs/":
		return "/docs/" + name + "/"
	case name == "readme":
		return "/" + strings.TrimPrefix(dir, "docs/")
	}
	return "/" + strings.TrimPrefix(dir, "docs/") + name + "/"
}

var (
	heading = regexp.MustCompile(`(?m)^# (.+)\n`)
	number  = regexp.MustCompile(`^(\d+)-`)
	link    = regexp.MustCompile(`\]\(([^)\s#]*)(#[^)\s]*)?\)`)
	fence   = regexp.MustCompile("(?ms)^```.*?^```")
	generic = regexp.MustCompile(`((?:<a name="|\(<#|\(#)\w+)\[[^\]]*\]`) // the type parameters in an anchor, which links lack
	foreign = regexp.MustCompile(`https://pkg\.go\.dev/` + regexp.QuoteMeta(module) + `/([a-z0-9/]+?)/?(#[^)\s>]*)?([)>])`)
)

func (s *site) document(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	title, body := name, string(text)
	if at := heading.FindStringSubmatchIndex(body); at != nil {
		title, body = body[at[2]:at[3]], body[:at[0]]+body[at[1]:]
	}
	weight := map[string]int{"README.md": 0, "docs/guide/README.md": 1, "docs/maintain/README.md": 6, "docs/decisions/README.md": 7}[name]
	if n := number.FindStringSubmatch(path.Base(name)); n != nil {
		if weight, err = strconv.Atoi(n[1]); err != nil {
			return err
		}
	}
	file := strings.TrimSuffix(s.pages[name], "/")
	if path.Base(name) == "README.md" {
		file += "/_index"
	}
	return s.page(file, title, weight, s.linked(body, path.Dir(name)))
}

// linked has the links of a document in a folder lead to pages. Code is unchanged.
func (s *site) linked(body, dir string) string {
	var b strings.Builder
	at := 0
	for _, code := range append(fence.FindAllStringIndex(body, -1), []int{len(body), len(body)}) {
		b.WriteString(link.ReplaceAllStringFunc(body[at:code[0]], func(found string) string {
			m := link.FindStringSubmatch(found)
			if m[1] == "" || strings.Contains(m[1], ":") || strings.HasPrefix(m[1], "/") {
				return found
			}
			return "](" + s.target(path.Join(dir, m[1])) + m[2] + ")"
		}))
		b.WriteString(body[code[0]:code[1]])
		at = code[1]
	}
	return b.String()
}

func (s *site) target(name string) string {
	shown := []string{name, name + "/README.md"}
	if path.Ext(name) == ".go" {
		shown = append(shown, path.Dir(name))
	}
	for _, name := range shown {
		if address, ok := s.pages[name]; ok {
			return address
		}
	}
	if path.Ext(name) == ".svg" {
		return "/" + path.Base(name)
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return source + "tree/main/" + name
	}
	return source + "blob/main/" + name
}

func (s *site) api(ctx context.Context, gomarkdoc, folder string) error {
	cmd := exec.CommandContext(ctx, gomarkdoc, "--repository.url", strings.TrimSuffix(source, "/"), "--repository.default-branch", "main", "--repository.path", "/", "./"+folder)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("gomarkdoc %s: %w: %s", folder, err, stderr.String())
	}
	_, body, _ := strings.Cut(string(out), "\n# ") // its own title
	_, body, found := strings.Cut(body, "\n")
	if !found {
		return fmt.Errorf("gomarkdoc %s: the page has no title", folder)
	}
	body = foreign.ReplaceAllStringFunc(body, func(found string) string {
		m := foreign.FindStringSubmatch(found)
		if address, ok := s.pages[m[1]]; ok {
			return address + m[2] + m[3]
		}
		return found
	})
	return s.page("/api/"+folder+"/_index", folder, 0, generic.ReplaceAllString(body, "$1"))
}

func (s *site) example(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return err
	}
	name := strings.TrimPrefix(folder, "examples/")
	var comment, code strings.Builder
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			return err
		}
		if parsed.Doc != nil {
			comment.WriteString(parsed.Doc.Text() + "\n")
			text = text[parsed.Package-1:]
		}
		fmt.Fprintf(&code, "## %s\n\n```go\n%s```\n\n", filepath.Base(file), text)
	}
	if _, err := os.Stat(filepath.Join(s.content, "..", "static", name+".png")); err == nil {
		fmt.Fprintf(&comment, "\n![what %s shows](/%s.png)\n\n", name, name)
	}
	return s.page("/examples/"+name, name, 0, comment.String()+code.String())
}

func (s *site) section(name, title string, weight int) error {
	return s.page("/"+name+"/_index", title, weight, "")
}

func (s *site) page(address, title string, weight int, body string) error {
	file := filepath.Join(s.content, filepath.FromSlash(address)+".md")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	front := fmt.Sprintf("---\ntitle: %q\n", title)
	if weight > 0 {
		front += fmt.Sprintf("weight: %d\n", weight)
	}
	if address != "/_index" {
		front += "type: docs\n"
	}
	return os.WriteFile(file, []byte(front+"---\n\n"+body), 0o644)
}
