#!/usr/bin/env bash
# A fresh project of somebody else's, in an empty folder and with an empty local repository, is built from what install.sh has left
# and runs: bindings-jvm/project.sh FOLDER
set -euo pipefail
installed=$(cd "${1:?the folder of install.sh}" && pwd)
version=$(ls "$installed/maven/io/github/fencelock/fencelock" | grep -m 1 '^[0-9]')
project=$(mktemp -d) && trap 'rm -rf "$project"' EXIT
cd "$project"

dependency() { # an artifact, and a classifier
  echo "<dependency><groupId>io.github.fencelock</groupId><artifactId>$1</artifactId><version>$version</version>${2:-}</dependency>"
}
sources='<classifier>sources</classifier>' pages='<classifier>javadoc</classifier>'
cat >pom.xml <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>com.example</groupId>
  <artifactId>shop</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.source>17</maven.compiler.source>
    <maven.compiler.target>17</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <repositories>
    <repository><id>fencelock</id><url>file://$installed/maven</url></repository>
  </repositories>
  <dependencies>
    <!-- It brings the Java package along. -->
    $(dependency fencelock-kotlin)
    $(dependency fencelock "$sources")
    $(dependency fencelock-kotlin "$sources")
    $(dependency fencelock "$pages")
    $(dependency fencelock-kotlin "$pages")
  </dependencies>
</project>
POM
mkdir -p src/main/java
cat >src/main/java/Shop.java <<'JAVA'
import io.github.fencelock.Client;
import io.github.fencelock.Fencelock;
import io.github.fencelock.Guard;

public final class Shop {
    public static void main(String[] words) throws Exception {
        System.out.println(io.github.fencelock.kotlin.ClientKt.class.getName());
        try (Client client = Fencelock.connect("memory:"); Guard guard = client.lock("orders:42").acquire()) {
            System.out.println("held: " + guard.isHeld());
        }
    }
}
JAVA
mvn --quiet --batch-mode -Dmaven.repo.local="$project/repository" compile \
  org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath -Dmdep.outputFile=path
said=$(java -cp "target/classes:$(cat path)" Shop)
[ "$(tail -n 1 <<<"$said")" = "held: true" ] || { echo "$said"; exit 1; }
for artifact in fencelock fencelock-kotlin; do
  ls "repository/io/github/fencelock/$artifact/$version/$artifact-$version"-{sources,javadoc}.jar >/dev/null
done
echo "a fresh project resolves both packages, their sources and their documentation, and runs"
