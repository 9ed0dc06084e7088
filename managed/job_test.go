package managed_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
)

// That of several processes is looked at in package strategytest, which starts them.
func TestState_job(t *testing.T) {
	alone, err := managed.New(strategies.Jit(plugintest.CPU(t)))
	require.NoError(t, err)
	require.Nil(t, alone.Job())
	var none *managed.State
	require.Nil(t, none.Job())
}
