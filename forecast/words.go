package forecast

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Sentence says in one line what the restart would do, and names at most so many pods of each kind. What any restart would do, with the
// configuration that runs too, is reported separately.
func (f Forecast) Sentence(names int) string {
	text := f.sentence(names)
	if len(f.Static) > 0 {
		text += "; of static pods: " + Names(f.Static, names)
	}
	if len(f.Anyway) > 0 {
		text += "; any restart would kill, with the configuration that runs too: " + Names(f.Anyway, names)
	}
	for _, o := range f.Cgroups {
		text += "; " + o.String()
	}
	return text
}

func (f Forecast) sentence(names int) string {
	switch {
	case len(f.Missing) > 0:
		return "what would happen to running pods is not known: " + f.Missing[0].String()
	case len(f.Losses) == 0 && len(f.Anyway) > 0:
		return fmt.Sprintf("none of %d running pods would be killed by the change", f.Running)
	case len(f.Losses) == 0 && len(f.Doubts) > 0:
		return fmt.Sprintf("none of %d running pods is known to be killed at the restart", f.Running)
	case len(f.Losses) == 0:
		return fmt.Sprintf("none of %d running pods would be killed at the restart", f.Running)
	}
	count := fmt.Sprint(f.Least)
	switch {
	case f.Least == 0:
		count = fmt.Sprintf("up to %d", len(f.Losses))
	case f.Least < len(f.Losses):
		count = fmt.Sprintf("%d or more", f.Least)
	}
	return fmt.Sprintf("%s of %d running pods would be %s at the restart: %s", count, f.Running, f.verb(), Names(f.Losses, names))
}

func (u Unknown) String() string { return u.What + ": " + u.Why }

func (f Forecast) verb() string {
	restarted := func(l Loss) bool { return l.Restarted }
	switch {
	case !slices.ContainsFunc(f.Losses, restarted):
		return "killed"
	case !slices.ContainsFunc(f.Losses, func(l Loss) bool { return !l.Restarted }):
		return "restarted"
	}
	return "killed or restarted"
}

// Names lists pods as default/a (OutOfpods), default/b (OutOfpods)…, with at most so many names.
func Names(losses []Loss, names int) string {
	var list []string
	for _, l := range losses[:min(names, len(losses))] {
		doubt := ""
		if !l.Certain {
			doubt = "?"
		}
		detail := ""
		if l.Detail != "" {
			detail = ": " + l.Detail
		}
		list = append(list, fmt.Sprintf("%s/%s (%s%s%s)", l.Namespace, l.Name, l.Reason, doubt, detail))
	}
	text := strings.Join(list, ", ")
	if len(losses) > names {
		text += "…"
	}
	return text
}

func quantityText(name corev1.ResourceName, value int64) string {
	switch {
	case name == corev1.ResourceCPU:
		return resource.NewMilliQuantity(value, resource.DecimalSI).String()
	case name == corev1.ResourcePods || strings.Contains(string(name), "/"):
		return fmt.Sprint(value)
	}
	return bytesText(value)
}

// amountText is an amount of a signal of the eviction manager.
func amountText(signal string, value int64) string {
	if strings.HasSuffix(signal, "inodesFree") || strings.HasSuffix(signal, "pid.available") || signal == "pid" {
		return fmt.Sprint(value)
	}
	return bytesText(value)
}

// bytesText is in whole Mi where there are many.
func bytesText(value int64) string {
	if value > 16<<20 {
		value = value >> 20 << 20
	}
	return resource.NewQuantity(value, resource.BinarySI).String()
}
