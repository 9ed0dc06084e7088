package mpi

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

type launcher struct {
	name  string
	open  bool   // Open MPI; otherwise MPICH or similar
	major string // of Open MPI, "" if unknown
	dirs  []string
}

func launcherOf(getenv func(string) string) launcher {
	switch {
	case getenv("OMPI_VERSION") != "" && getenv("OMPI_COMM_WORLD_SIZE") != "":
		l := launcher{name: "mpirun of Open MPI " + getenv("OMPI_VERSION"), open: true}
		l.major, _, _ = strings.Cut(getenv("OMPI_VERSION"), ".")
		if dir := getenv("OMPI_LIBDIR_LOC"); dir != "" {
			l.dirs = append(l.dirs, dir)
		}
		if dir := getenv("OPAL_PREFIX"); dir != "" {
			l.dirs = append(l.dirs, filepath.Join(dir, "lib"))
		}
		return l
	case getenv("OMPI_COMM_WORLD_SIZE") != "":
		l := launcher{name: "mpirun of Open MPI", open: true}
		if getenv("OMPI_MCA_orte_launch") != "" { // up to version 4
			l.name, l.major = "mpirun of Open MPI 4", "4"
		}
		if dir := getenv("OPAL_PREFIX"); dir != "" {
			l.dirs = append(l.dirs, filepath.Join(dir, "lib"))
		}
		return l
	case getenv("PMI_RANK") != "" && getenv("SLURM_PROCID") != "":
		return launcher{name: "srun --mpi=pmi2"}
	case getenv("PMI_RANK") != "":
		return launcher{name: "mpiexec of MPICH", dirs: ofProxy("/proc", os.Getppid())}
	case getenv("PMIX_RANK") != "" && getenv("SLURM_PROCID") != "":
		return launcher{name: "srun --mpi=pmix", open: true}
	}
	return launcher{}
}

// The folders of MPICH's launcher's libraries, which no variable has. Its proxy on each host starts the ranks,
// perhaps by a shell.
func ofProxy(proc string, pid int) []string {
	for range 8 {
		at := filepath.Join(proc, strconv.Itoa(pid))
		program, _ := os.Readlink(filepath.Join(at, "exe"))
		if filepath.Base(program) == "hydra_pmi_proxy" {
			return librariesOf(filepath.Dir(program))
		}
		stat, _ := os.ReadFile(filepath.Join(at, "stat")) // pid (name) state parent …
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 2 {
			break
		}
		pid, _ = strconv.Atoi(fields[1])
	}
	return nil
}

func librariesOf(bin string) []string {
	prefix := filepath.Dir(bin)
	return []string{filepath.Join(prefix, "lib"), filepath.Join(prefix, "lib64"), filepath.Join(prefix, "lib", machine)}
}

var machine = map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]

func (by launcher) fits(open bool, major string) bool {
	return by.name == "" || by.open == open && (by.major == "" || major == "" || by.major == major)
}

// The MPI 5 ABI has no settled version number.
var names = map[string][]string{
	"linux":  {"libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.1", "libmpi_abi.so.0", "libmpi_abi.so", "libmpi.so"},
	"darwin": {"libmpi.40.dylib", "libmpi.12.dylib", "libmpi_abi.1.dylib", "libmpi_abi.0.dylib", "libmpi_abi.dylib", "libmpi.dylib"},
}

func search(by launcher, getenv func(string) string, root fs.FS) (string, error) {
	if path := getenv("LAZO_MPI"); path != "" {
		return path, nil
	}
	dirs := append([]string{}, by.dirs...)
	dirs = append(dirs, filepath.SplitList(getenv("LD_LIBRARY_PATH"))...)
	for _, bin := range filepath.SplitList(getenv("PATH")) {
		for _, program := range []string{"mpirun", "mpiexec"} {
			if _, err := fs.Stat(root, rooted(filepath.Join(bin, program))); err == nil {
				dirs = append(dirs, librariesOf(bin)...)
			}
		}
	}
	dirs = append(dirs, "/usr/lib/"+machine, "/usr/lib64", "/usr/lib64/openmpi/lib", "/usr/lib64/mpich/lib", "/usr/local/lib", "/usr/lib", "/opt/homebrew/lib")
	var unfit []string
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) { // it would depend on the working directory
			continue
		}
		for _, name := range names[runtime.GOOS] {
			path := filepath.Join(dir, name)
			if _, err := fs.Stat(root, rooted(path)); err != nil {
				continue
			}
			if open, major := inspect(root, path); by.fits(open, major) {
				return path, nil
			}
			unfit = append(unfit, path)
		}
	}
	if len(unfit) > 0 {
		return "", fmt.Errorf("mpi: %w for %s, which started this process: found %s, of another MPI: name the launcher's library by LAZO_MPI, or use another mpirun",
			ErrNotFound, by.name, strings.Join(unfit, ", "))
	}
	return "", fmt.Errorf("mpi: %w in LD_LIBRARY_PATH, next to the mpirun in PATH, or in the system's folders: install Open MPI or MPICH (or use lazo run, which brings one), or name the library by LAZO_MPI", ErrNotFound)
}

func rooted(path string) string { return strings.TrimPrefix(filepath.Clean(path), "/") }

// Version 5 of Open MPI renamed dependencies of its libraries.
func inspect(root fs.FS, path string) (open bool, major string) {
	opened, err := root.Open(rooted(path))
	if err != nil {
		return false, ""
	}
	defer opened.Close()
	reader, ok := opened.(io.ReaderAt)
	if !ok {
		return false, ""
	}
	file, err := elf.NewFile(reader)
	if err != nil {
		return strings.Contains(path, "libmpi.40."), ""
	}
	libraries, err := file.ImportedLibraries()
	if err != nil {
		return false, ""
	}
	for _, name := range libraries {
		switch {
		case strings.HasPrefix(name, "libopen-rte.so"):
			return true, "4"
		case strings.HasPrefix(name, "libopen-pal.so"):
			open = true
		}
	}
	if open {
		major = "5"
	}
	return open, major
}

func isABI(path string) bool {
	if file, err := elf.Open(path); err == nil {
		defer file.Close()
		if name, err := file.DynString(elf.DT_SONAME); err == nil && len(name) == 1 {
			return strings.HasPrefix(name[0], "libmpi_abi.")
		}
	}
	return strings.HasPrefix(filepath.Base(path), "libmpi_abi.")
}
