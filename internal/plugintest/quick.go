package plugintest

import "os"

// CompileQuickly makes this process compile in a third of the time; programs run at half of the speed, without XLA's
// newer fused code and LLVM's optimisations. It is for an init, of tests of Go around programs, or within a
// tolerance. A set XLA_FLAGS stays.
func CompileQuickly() {
	if !nightly {
		compileQuickly()
	}
}

// the race detector's run compiles quickly everywhere
func init() {
	if os.Getenv("LAZO_TEST_QUICK") != "" {
		compileQuickly()
	}
}

func compileQuickly() {
	const flags = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=2 --xla_backend_optimization_level=0"
	if _, set := os.LookupEnv("XLA_FLAGS"); set {
		return
	}
	if err := os.Setenv("XLA_FLAGS", flags); err != nil {
		panic(err)
	}
}
