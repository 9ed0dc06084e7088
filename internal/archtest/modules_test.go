package archtest

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A package of the main module that imports another module changes what the modules of their own require.
func TestModules_stateWhatTheyNeed(t *testing.T) {
	files, err := exec.Command("git", "-C", "../..", "ls-files", "*/go.mod").Output()
	require.NoError(t, err)
	checked := 0
	for _, file := range strings.Fields(string(files)) {
		dir := filepath.Dir(file)
		if dir == "dist/etcd" || dir == "internal/tools/site" {
			continue // hundreds of modules, which nothing else of `make test` downloads
		}
		checked++
		list := exec.Command("go", "list", "-mod=readonly", "-test", "-deps", "./...")
		list.Dir = filepath.Join("../..", dir)
		out, err := list.CombinedOutput()
		assert.NoError(t, err, "%s: run `go mod tidy` there: %.300s", dir, out)
	}
	require.Greater(t, checked, 5)
}
