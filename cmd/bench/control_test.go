package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
)

func TestControl(t *testing.T) {
	command := exec.Command(plugintest.Program(t, "."), "-workload", "control", "-variant", "16")
	command.Stderr = os.Stderr
	out, err := command.Output()
	require.NoError(t, err)
	require.Equal(t, []string{"join", "agree", "watch", "watch traffic", "end"}, variantsOf(t, out, "control", 16))
}
