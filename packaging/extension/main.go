// Command extension writes a tar of a folder with a label of SELinux on every file and directory, for sqfstar to make
// a system extension of.
//
//	extension FOLDER >FILE.tar
//
// A file without a label is unlabeled_t on the host, and a policy that enforces lets systemd execute no such program.
// The labels are written as data, because only root on a Linux machine can put them on the files themselves.
// SOURCE_DATE_EPOCH is the time of all files.
package main

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: extension FOLDER >FILE.tar")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "extension:", err)
		os.Exit(1)
	}
}

func run(folder string, to io.Writer) error {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH is not a time in seconds: %w", err)
	}
	return write(os.DirFS(folder), time.Unix(seconds, 0), to)
}

// write gives the tar of all files, which belong to root.
func write(files fs.FS, at time.Time, to io.Writer) error {
	archive := tar.NewWriter(to)
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		header, err := headerOf(path, entry)
		if err != nil {
			return err
		}
		header.ModTime = at
		if err := archive.WriteHeader(header); err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		_, err = archive.Write(content)
		return err
	})
	if err != nil {
		return err
	}
	return archive.Close()
}

func headerOf(path string, entry fs.DirEntry) (*tar.Header, error) {
	info, err := entry.Info()
	if err != nil {
		return nil, err
	}
	header := &tar.Header{Name: path, Mode: int64(info.Mode().Perm()), Format: tar.FormatPAX,
		PAXRecords: map[string]string{"SCHILY.xattr.security.selinux": labelOf(path)}}
	switch {
	case info.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, path+"/"
	case info.Mode().IsRegular():
		header.Typeflag, header.Size = tar.TypeReg, info.Size()
	default:
		return nil, fmt.Errorf("%s is neither a file nor a directory: the image may have nothing else", path)
	}
	return header, nil
}

// labelOf is the label that every policy has for this path. A policy with container-selinux has kubelet_exec_t for the
// program, others do not know that type, and would see no label at all. Directories count: the host's /usr has the
// labels of the image's, where both have one.
func labelOf(path string) string {
	kind := "usr_t"
	switch {
	case path == "usr/bin" || strings.HasPrefix(path, "usr/bin/"):
		kind = "bin_t"
	case path == "usr/lib" || strings.HasPrefix(path, "usr/lib/"):
		kind = "lib_t"
	}
	return "system_u:object_r:" + kind + ":s0"
}
