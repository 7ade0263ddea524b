#!/usr/bin/env bash
# Makes a jar for each platform, with its library alone, beside the jar with all of them: bindings-jvm/split.sh REPOSITORY
set -euo pipefail
cd "${1:?the Maven repository}"/io/github/fencelock/fencelock/*/
jar=fencelock-$(basename "$PWD").jar
libraries=$(unzip -Z1 "$jar" 'io/github/fencelock/natives/*/fencelock')
for library in $libraries; do
  one=${jar%.jar}-$(basename "$(dirname "$library")").jar
  cp "$jar" "$one"
  others=$(grep --invert-match --line-regexp "$library" <<<"$libraries" || true)
  [ -z "$others" ] || zip --quiet --delete "$one" $others
  for sum in md5 sha1; do
    "${sum}sum" "$one" | cut -d ' ' -f 1 | tr -d '\n' >"$one.$sum"
  done
  ls -l "$one"
done
