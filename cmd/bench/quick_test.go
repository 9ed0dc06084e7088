package main

import "github.com/lazo-ml/lazo/internal/plugintest"

func init() { plugintest.CompileQuickly() }
