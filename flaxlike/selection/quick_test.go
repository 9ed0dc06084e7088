package selection_test

import "github.com/lazo-ml/lazo/internal/plugintest"

func init() { plugintest.CompileQuickly() }
