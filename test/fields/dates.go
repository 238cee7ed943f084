package main

import "maps"

// dated writes into the rows which type each field has, with which version it came and with which it went, and adds rows for fields that
// have none.
func dated(rows []row, releases []release) []row {
	known := map[string]row{}
	for _, r := range rows {
		r.Type, r.Since, r.Until = "", "", ""
		known[r.Path] = r
	}
	for i, release := range releases {
		for path, text := range release.types {
			r := known[path]
			if i > 0 && (r.Type == "" || r.Until != "") {
				r.Since = release.minor
			}
			r.Path, r.Type, r.Until = path, text, ""
			known[path] = r
		}
		for path, r := range known {
			if _, has := release.types[path]; !has && r.Type != "" && r.Until == "" {
				r.Until = release.minor
				known[path] = r
			}
		}
	}
	return sorted(maps.Values(known))
}
