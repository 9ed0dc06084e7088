package pretrained_test

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/pretrained"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

// hub serves files of a model over TLS, as the Hugging Face hub does: small ones with git's digest, weights with
// SHA-256.
type hub struct {
	pretrained.Hub
	files    map[string]string
	requests []string
	change   func(list map[string]any) // of the listing
	broken   bool                      // each answer ends after 1,000 bytes
}

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{files: map[string]string{"README.md": "words", "pytorch_model.bin": "other weights", "onnx/model.onnx": "other weights", "merges.txt": "a b"}}
	for _, name := range []string{"config.json", "model.safetensors"} {
		text, err := os.ReadFile(filepath.Join("testdata/bert", name))
		require.NoError(t, err)
		h.files[name] = string(text)
	}
	h.files["1_Pooling/config.json"] = `{"pooling_mode": "mean"}`
	server := httptest.NewTLSServer(http.HandlerFunc(h.serve))
	t.Cleanup(server.Close)
	h.Hub = pretrained.Hub{Endpoint: server.URL, Token: "secret", Cache: filepath.Join(t.TempDir(), "cache"), HTTP: server.Client()}
	return h
}

func (h *hub) serve(w http.ResponseWriter, r *http.Request) {
	h.requests = append(h.requests, r.URL.Path+r.Header.Get("Range"))
	if r.Header.Get("Authorization") != "Bearer secret" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if revision, ok := strings.CutPrefix(r.URL.Path, "/api/models/org/model/revision/"); ok && (revision == "main" || revision == commit || revision == "a/b") && r.URL.Query().Get("blobs") == "true" {
		var list []map[string]any
		for name, text := range h.files {
			f := map[string]any{"rfilename": name, "size": len(text), "blobId": fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(text), text)))}
			if strings.HasSuffix(name, ".safetensors") {
				f["blobId"] = strings.Repeat("0", 40) // of a pointer
				f["lfs"] = map[string]any{"sha256": fmt.Sprintf("%x", sha256.Sum256([]byte(text))), "size": len(text), "pointerSize": 134}
			}
			list = append(list, f)
		}
		all := map[string]any{"sha": commit, "siblings": list}
		if h.change != nil {
			h.change(all)
		}
		json.NewEncoder(w).Encode(all)
		return
	}
	name, ok := strings.CutPrefix(r.URL.Path, "/org/model/resolve/"+commit+"/")
	text, there := h.files[name]
	if !ok || !there {
		http.NotFound(w, r)
		return
	}
	if h.broken {
		w = cut{w, new(int)}
	}
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
}

// cut ends an answer after 1,000 bytes.
type cut struct {
	http.ResponseWriter
	sent *int
}

func (c cut) Write(p []byte) (int, error) {
	if *c.sent += len(p); *c.sent > 1000 {
		c.ResponseWriter.Write(p[:max(0, 1000-*c.sent+len(p))])
		http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return c.ResponseWriter.Write(p)
}

func (h *hub) count(part string) (n int) {
	for _, r := range h.requests {
		if strings.Contains(r, part) {
			n++
		}
	}
	return n
}

// A damaged list of a commit's files in the cache is requested again.
func TestDownload_damagedList(t *testing.T) {
	h := newHub(t)
	h.Revision = commit
	_, err := pretrained.Download(t.Context(), "org/model", h.Hub)
	require.NoError(t, err)
	require.Equal(t, 1, h.count("/api/"))
	list := filepath.Join(h.Cache, "models--org--model", "lazo", commit+".json")
	good, err := os.ReadFile(list)
	require.NoError(t, err)
	for i, damaged := range []string{"", "{", "{}", strings.Replace(string(good), commit, strings.Repeat("0", 40), 1)} {
		require.NoError(t, os.WriteFile(list, []byte(damaged), 0o600))
		_, err := pretrained.Download(t.Context(), "org/model", h.Hub)
		require.NoError(t, err)
		require.Equal(t, 2+i, h.count("/api/"))
		_, err = pretrained.Download(t.Context(), "org/model", h.Hub)
		require.NoError(t, err)
		require.Equal(t, 2+i, h.count("/api/"), "it is replaced")
	}
}

// A model is downloaded once, into Python's layout, without the weights of other programs.
func TestDownload(t *testing.T) {
	h := newHub(t)
	folder, err := pretrained.Download(t.Context(), "org/model", h.Hub)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(h.Cache, "models--org--model", "snapshots", commit), folder)
	base, err := pretrained.Open(t.Context(), folder)
	require.NoError(t, err)
	require.NotEmpty(t, base.Classifier(0).Labels)
	for _, name := range []string{"merges.txt", "1_Pooling/config.json"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		require.Equal(t, h.files[name], string(text))
	}
	for _, name := range []string{"README.md", "pytorch_model.bin", "onnx"} {
		require.NoFileExists(t, filepath.Join(folder, name))
	}
	to, err := os.Readlink(filepath.Join(folder, "1_Pooling", "config.json"))
	require.NoError(t, err)
	require.Equal(t, "../../../blobs", filepath.Dir(to))
	ref, err := os.ReadFile(filepath.Join(h.Cache, "models--org--model/refs/main"))
	require.NoError(t, err)
	require.Equal(t, commit, string(ref))

	h.requests = nil
	again, err := pretrained.Download(t.Context(), "org/model", h.Hub)
	require.NoError(t, err)
	require.Equal(t, folder, again)
	require.Equal(t, []string{"/api/models/org/model/revision/main"}, h.requests, "the branch may have moved, and files are in the cache")

	h.requests, h.Revision, h.Endpoint = nil, commit, "https://nowhere.invalid"
	again, err = pretrained.Download(t.Context(), "org/model", h.Hub)
	require.NoError(t, err)
	require.Equal(t, folder, again)
	require.Empty(t, h.requests, "a commit does not change")
}

// What came of a broken download is not requested again.
func TestDownload_goesOn(t *testing.T) {
	h := newHub(t)
	h.Files, h.Revision, h.broken = []string{"*.safetensors"}, "a/b", true
	size := len(h.files["model.safetensors"])
	for range size / 1000 {
		_, err := pretrained.Download(t.Context(), "org/model", h.Hub)
		require.ErrorContains(t, err, "pretrained: download org/model: model.safetensors: fetch: model.safetensors from ")
	}
	folder, err := pretrained.Download(t.Context(), "org/model", h.Hub)
	require.NoError(t, err)
	require.Equal(t, size/1000, h.count("/model.safetensorsbytes="))
	text, err := os.ReadFile(filepath.Join(folder, "model.safetensors"))
	require.NoError(t, err)
	require.Equal(t, h.files["model.safetensors"], string(text))
	require.FileExists(t, filepath.Join(h.Cache, "models--org--model/refs/a/b"))
}

// Names, revisions and listings that are wrong or hostile are errors, and nothing is written outside the cache.
func TestDownload_errors(t *testing.T) {
	file := func(name string) func(map[string]any) {
		return func(list map[string]any) {
			list["siblings"] = []map[string]any{{"rfilename": name, "size": 5, "blobId": strings.Repeat("a", 40)}}
		}
	}
	for _, row := range []struct {
		name   string
		change func(h *hub)
		want   string
	}{
		{name: "../x", want: `a name as "organization/model" is expected`},
		{name: "a/b/c", want: `a name as "organization/model" is expected`},
		{name: "org/none", want: "404 Not Found, want 200: is the name right"},
		{change: func(h *hub) { h.Cache = "" }, want: "the Cache is empty, expected a folder"},
		{change: func(h *hub) { h.Token = "wrong" }, want: "may the Token read"},
		{change: func(h *hub) { h.Revision = "../x" }, want: "expected a branch, tag or commit"},
		{change: func(h *hub) { h.Revision = "." }, want: "expected a branch, tag or commit"},
		{change: func(h *hub) { h.Revision = "main/.." }, want: "expected a branch, tag or commit"},
		{change: func(h *hub) { h.change = file("a\x1b[2J\n.json") }, want: "expected a local name"},
		{change: func(h *hub) { h.change = func(l map[string]any) { l["siblings"] = make([]struct{}, 1<<16+1) } }, want: "a list of at most 65536 files"},
		{change: func(h *hub) { h.change = func(l map[string]any) { l["siblings"] = strings.Repeat("x", 8<<20) } }, want: "more than 8388608 bytes"},
		{change: func(h *hub) {
			h.change = func(l map[string]any) {
				all := l["siblings"].([]map[string]any)
				l["siblings"] = append(all, map[string]any{"rfilename": all[0]["rfilename"], "size": 5, "blobId": strings.Repeat("a", 40)})
			}
		}, want: "it is listed twice"},
		{change: func(h *hub) {
			h.change = func(l map[string]any) { l["SHA"] = l["sha"]; delete(l, "sha") }
		}, want: `files of the commit ""`},
		{change: func(h *hub) { h.Revision = "none" }, want: "404 Not Found"},
		{change: func(h *hub) { h.Files = []string{"*.json", "*.gguf"} }, want: `no file matches ["*.gguf"]`},
		{change: func(h *hub) { h.Files = []string{"["} }, want: "syntax error in pattern"},
		{change: func(h *hub) { delete(h.files, "model.safetensors") }, want: "it has no model.safetensors, nor shards of one: other formats are not read"},
		{change: func(h *hub) { h.change = file("../../x.json") }, want: "it has no model.safetensors"},
		{change: func(h *hub) { h.change, h.Files = file("../../x.json"), []string{"*/*/*"} }, want: "expected a local name"},
		{change: func(h *hub) { h.change = file("..\\x.json") }, want: "expected a local name"},
		{change: func(h *hub) { h.change = func(l map[string]any) { l["sha"] = "../../x" } }, want: `of the commit "../../x"`},
		{change: func(h *hub) { h.change = func(l map[string]any) { l["siblings"] = 5 } }, want: "the hub's list of files"},
		{change: func(h *hub) {
			h.change = func(l map[string]any) {
				l["siblings"].([]map[string]any)[0]["size"] = 0
				l["siblings"].([]map[string]any)[0]["lfs"] = nil
			}
			h.files = map[string]string{"config.json": "{}"}
		}, want: "at least a byte"},
		{change: func(h *hub) {
			h.change = func(map[string]any) { h.files["model.safetensors"] = strings.ToUpper(h.files["model.safetensors"]) }
		}, want: "model.safetensors: fetch: model.safetensors from "},
	} {
		h := newHub(t)
		cache := h.Cache
		if row.change != nil {
			row.change(h)
		}
		if row.name == "" {
			row.name = "org/model"
		}
		_, err := pretrained.Download(t.Context(), row.name, h.Hub)
		require.ErrorContains(t, err, row.want)
		require.NotContains(t, err.Error(), "secret")
		outside, err := os.ReadDir(filepath.Dir(cache))
		require.NoError(t, err)
		for _, o := range outside {
			require.Equal(t, "cache", o.Name())
		}
	}
}
