package main_test

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The command reads the environment as Python's huggingface_hub, and prints the folder.
func TestModelDownload(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	contents := map[string]string{}
	for _, name := range []string{"config.json", "model.safetensors"} {
		content, err := os.ReadFile(folders + "bert/" + name)
		require.NoError(t, err)
		contents[name] = string(content)
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if content, there := contents[path.Base(r.URL.Path)]; there {
			_, _ = w.Write([]byte(content))
			return
		}
		var list []map[string]any
		for name, content := range contents {
			list = append(list, map[string]any{"rfilename": name, "size": len(content), "blobId": fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content))),
				"lfs": map[string]any{"sha256": fmt.Sprintf("%x", sha256.Sum256([]byte(content))), "size": len(content)}})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"sha": commit, "siblings": list})
	}))
	defer server.Close()
	dir := t.TempDir()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, value := range map[string]string{"SSL_CERT_FILE": inFolder(t, dir, "server.pem", string(certificate)), "HF_ENDPOINT": server.URL, "HF_TOKEN": "secret",
		"HF_HUB_CACHE": "", "HUGGINGFACE_HUB_CACHE": "", "HF_HOME": filepath.Join(dir, "home")} {
		t.Setenv(name, value)
	}
	r := run(t, "model", "download", "org/model")
	require.Zero(t, r.code, r.stderr)
	folder := filepath.Join(dir, "home", "hub", "models--org--model", "snapshots", commit)
	require.Equal(t, folder+"\n", r.stdout)
	require.Equal(t, 2, strings.Count(r.stderr, "download "), r.stderr)
	require.Zero(t, run(t, "model", "show", folder).code)
	t.Setenv("HF_HUB_CACHE", filepath.Join(dir, "hub"))
	r = run(t, "model", "download", "org/model", "--files", "config.json", "--revision", commit)
	require.Zero(t, r.code, r.stderr)
	require.NoFileExists(t, filepath.Join(dir, "hub", "models--org--model", "snapshots", commit, "model.safetensors"))
	r = run(t, "model", "download", "org/model", "--files", "*.gguf", "--cache", filepath.Join(dir, "other"))
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, `no file matches ["*.gguf"]`)
	t.Setenv("HF_TOKEN", "")
	r = run(t, "model", "download", "org/model", "--cache", filepath.Join(dir, "third"))
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "may the Token read a private or gated model?")
}
