package main

import (
	_ "embed" // of scale.md
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/template"
)

//go:embed scale.md
var scaleText string

// scaleMain writes the page about fleets from the result files of `bench nodes`.
func scaleMain(arguments []string) error {
	var document, long string
	s := &scalePage{}
	flags := flag.NewFlagSet("bench scale", flag.ExitOnError)
	flags.StringVar(&document, "document", "docs/scale.md", "the page")
	flags.StringVar(&s.Note, "note", "", "what a reader has to know of these runs")
	flags.StringVar(&long, "long", "", "the result file of bench long, if it is there")
	_ = flags.Parse(arguments) // exits on errors
	var err error
	if s.Long, err = load(long); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, path := range flags.Args() {
		r, err := load(path)
		if err != nil {
			return err
		}
		if r.find(sectionNodes+"/nodes") == nil {
			return fmt.Errorf("%s is of no fleet; give files that bench nodes wrote", path)
		}
		s.Fleets = append(s.Fleets, r)
	}
	slices.SortFunc(s.Fleets, func(a, b *Result) int { return int(s.nodes(a) - s.nodes(b)) })
	text, err := s.page()
	if err != nil {
		return fmt.Errorf("writing %s: %w", document, err)
	}
	return os.WriteFile(document, []byte(text), 0o644)
}

// A scalePage is about several fleets, the smallest first.
type scalePage struct {
	Fleets []*Result
	Long   *Result // one node for a longer time; may be nil
	Note   string
}

func (s *scalePage) page() (string, error) {
	page, err := template.New("scale.md").Parse(scaleText)
	if err != nil {
		return "", err
	}
	if _, err := s.fit("nodes"); err != nil {
		return "", err
	}
	var text strings.Builder
	err = page.Execute(&text, s)
	return text.String(), err
}

// Last is the largest fleet's result, for what is the same in all.
func (s *scalePage) Last() *Result { return s.Fleets[len(s.Fleets)-1] }

func (s *scalePage) nodes(r *Result) float64 { return r.find(sectionNodes + "/nodes").median() }

// value is a row's median; a row that is not there is an error, and never a 0.
func (s *scalePage) value(r *Result, name string) (float64, error) {
	row := r.find(sectionNodes + "/" + name)
	if row == nil || len(row.Samples) == 0 {
		return 0, fmt.Errorf("the fleet of %g nodes has no row %q; measure it again", s.nodes(r), name)
	}
	return row.median(), nil
}

// Kinds tells how the supervisors of each fleet ran.
func (s *scalePage) Kinds() string {
	var words []string
	for _, r := range s.Fleets {
		kind := "in one process"
		if row := r.find(sectionNodes + "/supervisors that are processes of their own"); row != nil && row.median() > 0 {
			kind = "processes of the shipped program"
		}
		words = append(words, fmt.Sprintf("- %g nodes: %s; commit %s, %s\n", s.nodes(r), kind, r.Commit, r.Date.Format("2006-01-02 15:04 MST")))
	}
	return strings.Join(words, "")
}

// Table compares the fleets by rows, given by their names.
func (s *scalePage) Table(names ...string) (string, error) {
	lines := [][]string{{"nodes"}}
	for _, r := range s.Fleets {
		lines[0] = append(lines[0], fmt.Sprint(s.nodes(r)))
	}
	for _, name := range names {
		line := []string{name}
		for _, r := range s.Fleets {
			value, err := s.value(r, name)
			if err != nil {
				return "", err
			}
			line = append(line, strings.TrimSpace(figure(value)+" "+r.find(sectionNodes+"/"+name).Unit))
		}
		lines = append(lines, line)
	}
	return markdownTable(lines), nil
}

// Reached tells when the first, the middle, 95 % and all of the nodes ran what a wave brought.
func (s *scalePage) Reached() (string, error) {
	lines := [][]string{{"until a node runs it", "nodes", "first", "median", "95 %", "last"}}
	for _, wave := range []string{waveAssigned, waveEdited, waveSpread, waveOutage} {
		for _, r := range s.Fleets {
			if _, err := s.value(r, wave+": until a node runs it"); err != nil {
				return "", err
			}
			row := r.find(sectionNodes + "/" + wave + ": until a node runs it")
			line := []string{wave, fmt.Sprint(s.nodes(r))}
			for _, at := range []float64{slices.Min(row.Samples), row.median(), share(row, 0.95), slices.Max(row.Samples)} {
				line = append(line, figure(at)+" s")
			}
			lines = append(lines, line)
		}
	}
	return markdownTable(lines), nil
}

// fit lays a line through what all fleets have of a row.
func (s *scalePage) fit(name string) (line, error) {
	var points []point
	for _, r := range s.Fleets {
		value, err := s.value(r, name)
		if err != nil {
			return line{}, err
		}
		points = append(points, point{s.nodes(r), value})
	}
	return fit(points)
}
